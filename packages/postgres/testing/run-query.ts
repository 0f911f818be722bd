import { withSession } from '@order-gateway/dev-postgres/testing';
import type postgres from 'postgres';

/** Runs a statement or a script on a separate connection. Returns the rows of a statement. */
export function runQuery(url: string, text: string): Promise<postgres.Row[]> {
  return withSession(url, async (session) => [...(await session.unsafe(text))]);
}
