import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { type DatabaseClient, openClient } from '../../src/connections/client.ts';

/**
 * This program runs statements until its parent process disconnects. It responds to a message once each of its clients
 * has run a statement after the message.
 */
const url = process.argv[2] ?? '';
const clients = Array.from({ length: 12 }, () => openClient({ url, applicationName: 'reconnecting' }, (db) => db));
let waiting: Set<DatabaseClient<unknown>> = new Set();

process.on('message', () => {
  waiting = new Set(clients);
});
process.once('disconnect', () => process.exit());

for (const client of clients) void runStatements(client);

async function runStatements(client: (typeof clients)[number]): Promise<never> {
  for (;;) {
    try {
      await client.run((db) => db.execute(sql`select pg_sleep(0.005)`));
      if (waiting.delete(client) && waiting.size === 0) process.send?.('all have run');
    } catch {
      await sleep(5);
    }
  }
}
