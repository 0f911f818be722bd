import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';

/** Runs statements. `first` returns the first row. */
export interface Run {
  readonly run: <Result>(statement: (db: PostgresJsDatabase) => Promise<Result>) => Promise<Result>;
  readonly first: <Row>(statement: (db: PostgresJsDatabase) => Promise<Row[]>) => Promise<Row | undefined>;
}
