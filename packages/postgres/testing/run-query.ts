import { withSession } from '@order-gateway/dev-postgres/testing';
import type postgres from 'postgres';

/** Runs one statement on a separate connection, and returns its rows. */
export function runQuery(url: string, text: string): Promise<postgres.Row[]> {
  return withSession(url, async (session) => [...(await session.unsafe(text))]);
}
