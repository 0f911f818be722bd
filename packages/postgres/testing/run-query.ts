import postgres from 'postgres';

/** Runs one statement on a connection of its own, and gives its rows. */
export async function runQuery(url: string, text: string): Promise<postgres.Row[]> {
  // Without the look-up of array types: where the server is in recovery, the driver leaves its rejection to nobody.
  const session = postgres(url, { max: 1, fetch_types: false, connect_timeout: 5, onnotice: () => {} });
  try {
    return [...(await session.unsafe(text))];
  } finally {
    await session.end({ timeout: 5 });
  }
}
