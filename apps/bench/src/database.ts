import { startTestServer, type TestServer } from '@order-gateway/dev-postgres/testing';
import postgres from 'postgres';
import { insertFrom, rowExpressions } from './order.ts';

const bulkRows = 500_000;
/** About 3 GB, because each log file has 16 MB. */
const logFilesMax = 190;

/** Starts an embedded PostgreSQL. `cleanup` stops and removes it, and it is also removed if this process is killed. */
export async function startDatabase(cleanup: AsyncDisposableStack, loadSeconds: number): Promise<TestServer> {
  const server = await startTestServer({ min_wal_size: '3GB' });
  cleanup.defer(() => server.stop());
  await prepareLog(server.url, Math.min(loadSeconds, logFilesMax));
  return server;
}

/**
 * Fills the write-ahead log, so that the server reuses files like one that has run for a long time. On a new server,
 * all commits wait about 40 ms for each new file of 16 MB. A second of load writes about one file.
 */
async function prepareLog(url: string, files: number): Promise<void> {
  await using sql = connect(url);
  for (let file = 0; file < files; file += 1) {
    // PostgreSQL switches to the next file only if the current one has an entry.
    await sql`select pg_logical_emit_message(true, 'bench', '')`;
    await sql`select pg_switch_wal()`;
  }
  // PostgreSQL reuses files from before the second-to-last checkpoint.
  await sql`checkpoint`;
  await sql`checkpoint`;
}

/** Adds `rows` orders to a table. Their tokens are hashes, which are spread like the random tokens of real orders. */
export async function fillTable(url: string, merchantId: number, rows: number, signal: AbortSignal): Promise<void> {
  await using sql = connect(url);
  const [serviceOrderId, orderToken, orderId] = ['n', 'md5(n::text)', "'before-' || n"];
  const values = rowExpressions({ merchantId: String(merchantId), serviceOrderId, orderToken, orderId });
  for (let first = 1; first <= rows; first += bulkRows) {
    signal.throwIfAborted();
    const last = Math.min(first + bulkRows - 1, rows);
    await sql.unsafe(insertFrom(`select ${values} from generate_series(${first}, ${last}) n`));
  }
  await sql`vacuum (analyze) orders`;
  await sql`checkpoint`;
}

/** Opens one connection, which `await using` closes at the end of its block. */
export function connect(url: string): postgres.Sql & AsyncDisposable {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) });
}
