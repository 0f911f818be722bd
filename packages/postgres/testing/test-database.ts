import type { TestDatabase } from '@order-gateway/dev-postgres/testing';
import postgres from 'postgres';
import { afterAll, beforeAll } from 'vitest';
import { createMigratedDatabase } from './migrated-database.ts';
import { testPatience } from './patience.ts';

interface OpenedTestDatabase {
  readonly url: string;
  /** For stores in tests that are not about time limits. */
  readonly options: { readonly url: string; readonly patience: number };
  readonly sql: postgres.Sql;
}

/**
 * Provides a migrated database for the tests of one file, with two connections. It exists from before the first test
 * until after the last.
 */
export function useTestDatabase(create = createMigratedDatabase): OpenedTestDatabase {
  let database: TestDatabase | undefined;
  let sql: postgres.Sql | undefined;
  beforeAll(async () => {
    database = await create();
    sql = postgres(database.url, { max: 2, onnotice: () => {} });
  });
  afterAll(async () => {
    await sql?.end({ timeout: 1 });
    await database?.drop();
  });
  const opened = <Part>(part: Part | undefined): Part => {
    if (part === undefined) throw new Error('the database exists only while tests and hooks run');
    return part;
  };
  return {
    get url() {
      return opened(database).url;
    },
    get options() {
      return { url: opened(database).url, patience: testPatience };
    },
    get sql() {
      return opened(sql);
    },
  };
}
