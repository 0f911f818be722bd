import { readFile } from 'node:fs/promises';
import { withSession } from '@gateway/dev-postgres/testing';

/** Runs `distribute.sql` as psql does: each statement by itself, as they can't be in one transaction. */
export async function distribute(url: string): Promise<void> {
  const text = await readFile(new URL('../distribute.sql', import.meta.url), 'utf8');
  const statements = text.replaceAll(/^--.*$/gm, '').split(/;$/m);
  await withSession(url, async (session) => {
    for (const statement of statements) if (statement.trim() !== '') await session.unsafe(statement);
  });
}
