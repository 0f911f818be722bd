import type postgres from 'postgres';
import type { Contender } from '../contenders.ts';
import { connect } from '../database.ts';
import { type LoadOptions, sendLoad } from '../load/send-load.ts';
import { cpuMicroseconds, databaseCpuMicroseconds, residentMib } from './process-usage.ts';

const memoryEveryMs = 1_000;

/** The figures of one contender in one round. Figures that cannot be read on this machine are NaN. */
export interface Run {
  readonly ordersPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
  /** Rows stored in the database, including those before and after the measured seconds. */
  readonly stored: number;
  /** CPU time of the contender's program per order. */
  readonly cpuMicroseconds: number;
  /** Bytes that the contender's program allocates on V8's heap per order: its garbage, because it keeps nothing. */
  readonly allocatedBytes: number;
  readonly databaseCpuMicroseconds: number;
  /** CPU time of the sender and of the bench, which reads the contender's log, per order. */
  readonly senderCpuMicroseconds: number;
  /** Memory of the contender's program, sampled every second. */
  readonly memoryMib: readonly number[];
}

/** Loads a contender once. Throws if it reports orders that the database does not have. */
export async function measure(contender: Contender, options: LoadOptions): Promise<Run> {
  await using sql = connect(contender.databaseUrl);
  const rowsBefore = await countRows(sql, contender);
  const before = await cpuOf(sql, contender);
  const allocatedBefore = await contender.allocatedBytes();
  const memoryMib: number[] = [];
  const sampling = setInterval(async () => memoryMib.push(await residentMib(contender.pid)), memoryEveryMs);
  const { created, seconds, ...result } = await sendLoad(contender, options).finally(() => clearInterval(sampling));
  const after = await cpuOf(sql, contender);
  const allocated = (await contender.allocatedBytes()) - allocatedBefore;
  const rows = (await countRows(sql, contender)) - rowsBefore;
  if (rows < created) {
    throw new Error(`${contender.name} created ${created} orders, but the database has ${rows} of them`);
  }
  return {
    ...result,
    stored: rows,
    ordersPerSecond: created / seconds,
    cpuMicroseconds: (after.server - before.server) / rows,
    allocatedBytes: allocated / rows,
    databaseCpuMicroseconds: (after.database - before.database) / rows,
    senderCpuMicroseconds: (after.sender - before.sender) / rows,
    memoryMib,
  };
}

async function countRows(sql: postgres.Sql, { merchant }: Contender): Promise<number> {
  const [row] = await sql`select count(*) from orders where merchant_id = ${merchant.id}`;
  return Number(row?.count);
}

async function cpuOf(sql: postgres.Sql, { pid }: Contender): Promise<Record<'server' | 'database' | 'sender', number>> {
  const [row] = await sql`select pg_backend_pid() as pid`;
  return {
    server: await cpuMicroseconds(pid),
    database: await databaseCpuMicroseconds(Number(row?.pid)),
    // This includes the sender, which is a child of this process and has ended.
    sender: await cpuMicroseconds(process.pid),
  };
}
