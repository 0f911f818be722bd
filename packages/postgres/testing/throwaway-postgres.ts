import { randomBytes } from 'node:crypto';
import { startTestServer } from '@gateway/dev-postgres/testing';
import { runQuery } from './run-query.ts';

export type ThrowawayPostgres = {
  /** A `postgres://` URL of the first, empty database. */
  url: string;
  /** Makes an empty database and returns its URL. It goes when the server goes. */
  createDatabase(): Promise<string>;
  stop(): Promise<void>;
};

/** Starts a server of its own. To be replaced by `createTestDatabase` and `startTestServer` of `@gateway/dev-postgres/testing`. */
export async function startThrowawayPostgres(): Promise<ThrowawayPostgres> {
  const { url, stop } = await startTestServer();
  const createDatabase = async () => {
    const name = `test_${randomBytes(8).toString('hex')}`;
    await runQuery(url, `create database ${name} template template0`);
    return new URL(`/${name}`, url).href;
  };
  return { url, createDatabase, stop };
}
