import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestServer } from '@gateway/dev-postgres/testing';
import { signalServer, trySignal } from '@gateway/dev-postgres/testing/replicated';
import type { Seeded } from '@gateway/fixtures/seeded';
import { runQuery } from '@gateway/postgres/testing/run-query';
import postgres from 'postgres';
import type { GatewayProcess } from '../../src/gateway/gateway-process.ts';
import type { ConnectionFault, FaultProxy } from './fault-proxy.ts';

/** What faults disturb. */
export interface Disturbed {
  readonly server: TestServer;
  /** Between the server and the gateways. */
  readonly proxy: FaultProxy;
  readonly gateways: readonly [GatewayProcess, ...GatewayProcess[]];
  readonly random: Seeded;
  /** Ends what waits for the server. */
  readonly signal: AbortSignal;
}

/** One kind of fault. */
export interface Fault {
  readonly name: string;
  /** How often it happens in `test:faults`, and in the short form in `test`. */
  readonly times: number;
  readonly timesInShort: number;
  /** Needs a server whose disk is so small that it can be filled. */
  readonly onSmallDisk?: true;
  /** Resolves when the fault is over, or has begun if it ends with a connection. */
  readonly inject: (disturbed: Disturbed) => Promise<void>;
}

/** Every kind of fault, and how often each happens. */
export const faults: readonly Fault[] = [
  { name: 'backend killed', times: 1_000, timesInShort: 4, inject: killBackend },
  { name: 'PostgreSQL killed', times: 20, timesInShort: 1, inject: endPostgres('SIGKILL') },
  { name: 'immediate stop', times: 20, timesInShort: 0, inject: endPostgres('SIGQUIT') },
  { name: 'fast stop', times: 20, timesInShort: 0, inject: endPostgres('SIGINT') },
  { name: 'smart stop, fast after 2 s', times: 20, timesInShort: 1, inject: endPostgres('SIGTERM', 'SIGINT') },
  { name: 'PostgreSQL stopped for 5 s', times: 20, timesInShort: 1, inject: stopProcesses },
  { name: 'cut before the answer', times: 190, timesInShort: 2, inject: disturbConnection('cut before the answer') },
  { name: 'cut after the answer', times: 190, timesInShort: 2, inject: disturbConnection('cut after the answer') },
  { name: 'half-open', times: 40, timesInShort: 1, inject: disturbConnection('half-open') },
  { name: 'a byte per 100 ms', times: 40, timesInShort: 1, inject: disturbConnection('trickle') },
  { name: 'connections rejected', times: 40, timesInShort: 1, inject: ({ proxy }) => proxy.rejectFor(500) },
  { name: 'orders locked for 60 s', times: 1, timesInShort: 0, inject: lockOrders(60) },
  { name: 'orders locked for 3 s', times: 5, timesInShort: 1, inject: lockOrders(3) },
  { name: 'max_connections reached', times: 10, timesInShort: 1, inject: takeConnections },
  { name: 'disk full', times: 10, timesInShort: 0, onSmallDisk: true, inject: fillDisk },
  { name: 'gateway killed', times: 200, timesInShort: 2, inject: killGateway },
];

const gatewayBackends = `from pg_stat_activity where application_name like 'order-gateway%'`;

async function killBackend({ server }: Disturbed): Promise<void> {
  const victim = `(select pid ${gatewayBackends} order by random() limit 1)`;
  await runQuery(server.url, `select pg_terminate_backend(pid) from ${victim} as victim`);
}

function killGateway({ gateways, random }: Disturbed): Promise<void> {
  return random.pick(gateways).crash();
}

const smartStopMs = 2_000;

/** Ends the server, which the process that started it starts again, by a signal or by another if it is still there then. */
function endPostgres(signal: NodeJS.Signals, then?: NodeJS.Signals): Fault['inject'] {
  return async (disturbed) => {
    const { server } = disturbed;
    const pid = postmaster(server);
    process.kill(pid, signal);
    if (then !== undefined) {
      // A smart stop waits for the clients, and the gateways stay.
      await sleep(smartStopMs);
      trySignal(pid, then);
    }
    await untilBack(disturbed, () => postmaster(server) !== pid);
  };
}

async function untilBack({ server, signal }: Disturbed, isRight = () => true): Promise<void> {
  while (!(await runQuery(server.url, 'select').then(isRight, () => false))) await sleep(50, undefined, { signal });
}

function postmaster({ dataDir }: TestServer): number {
  return Number.parseInt(readFileSync(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8'), 10);
}

/** Stops all processes of the server without a word to anyone, as a host that swaps or a paused virtual machine does. */
async function stopProcesses({ server }: Disturbed): Promise<void> {
  const pid = postmaster(server);
  signalServer(pid, 'SIGSTOP');
  try {
    await sleep(5_000);
  } finally {
    signalServer(pid, 'SIGCONT');
  }
}

function disturbConnection(fault: ConnectionFault): Fault['inject'] {
  return ({ proxy }) => proxy.disturb(fault);
}

function lockOrders(seconds: number): Fault['inject'] {
  return async ({ server }) => {
    await runQuery(server.url, `begin; lock table orders; select pg_sleep(${seconds}); commit`);
  };
}

const takenMs = 2_000;

/** Takes all connections of the server, those of the gateways too. */
async function takeConnections({ server }: Disturbed): Promise<void> {
  const [row] = await runQuery(server.url, 'show max_connections');
  const taken: postgres.Sql[] = [];
  const takeAll = async () => {
    const sessions = Array.from({ length: Number(row?.max_connections) }, () =>
      postgres(server.url, { max: 1, fetch_types: false, onnotice: () => {} }),
    );
    taken.push(...sessions);
    const opened = await Promise.allSettled(sessions.map((session) => session`select`));
    return sessions.filter((_, index) => opened[index]?.status === 'fulfilled');
  };
  try {
    const [first] = await takeAll();
    await first?.unsafe(`select pg_terminate_backend(pid) ${gatewayBackends}`);
    await takeAll();
    await sleep(takenMs);
  } finally {
    await Promise.all(taken.map((session) => session.end({ timeout: 1 })));
  }
}

const fullMs = 3_000;

async function fillDisk(disturbed: Disturbed): Promise<void> {
  const filler = join(disturbed.server.dataDir, 'filler');
  try {
    for (;;) appendFileSync(filler, Buffer.alloc(65_536));
  } catch (error) {
    if (Reflect.get(error as Error, 'code') !== 'ENOSPC') throw error;
    await sleep(fullMs);
  } finally {
    rmSync(filler, { force: true });
  }
  // It may have crashed, as the log must be written.
  await untilBack(disturbed);
}
