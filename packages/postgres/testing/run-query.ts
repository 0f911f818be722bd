import postgres from 'postgres';

/** Runs one statement on a connection of its own, and returns its rows. */
export async function runQuery(url: string, text: string): Promise<postgres.Row[]> {
  // The driver's lookup of array types fails on a server in recovery, as an unhandled rejection.
  const session = postgres(url, { max: 1, fetch_types: false, connect_timeout: 5, onnotice: () => {} });
  try {
    return [...(await session.unsafe(text))];
  } finally {
    await session.end({ timeout: 5 });
  }
}
