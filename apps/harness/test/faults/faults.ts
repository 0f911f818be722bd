import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestServer } from '@order-gateway/dev-postgres/testing';
import { signalServer, trySignal } from '@order-gateway/dev-postgres/testing/bare-server';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import postgres from 'postgres';
import type { GatewayProcess } from '../../src/gateway/gateway-process.ts';
import type { Seeded } from '../../src/workload/seeded.ts';
import type { ConnectionFault, FaultProxy } from './fault-proxy.ts';

/** A database server that faults can disturb. */
export interface ServerTarget {
  readonly server: TestServer;
  /** The proxy between the server and the gateways. */
  readonly proxy: FaultProxy;
}

/** The gateways of a run. */
export interface GatewayTarget {
  readonly gateways: readonly [GatewayProcess, ...GatewayProcess[]];
  readonly random: Seeded;
  /** Ends a wait for the server. */
  readonly signal: AbortSignal;
}

type Disturbed = ServerTarget & GatewayTarget;

/** A fault of the database or of a gateway. */
export interface FaultOf<Target> {
  readonly name: string;
  /** Resolves when the fault has ended, or when it has begun if it lasts as long as a connection. */
  readonly inject: (disturbed: Target & GatewayTarget) => Promise<void>;
}

/** One kind of fault. */
export interface Fault extends FaultOf<ServerTarget> {
  /** How often the fault happens in `test:faults`. */
  readonly times: number;
  /** How often the fault happens in the short form that `test` runs. */
  readonly timesInShort: number;
  /** Needs a proxy that can read the responses of the database. */
  readonly readsResponses?: true;
  /** Needs a server whose disk is so small that it can be filled. */
  readonly onSmallDisk?: true;
}

/** Every kind of fault, and how often each happens. */
export const faults: readonly Fault[] = [
  { name: 'backend killed', times: 1_000, timesInShort: 4, inject: killBackend },
  { name: 'PostgreSQL killed', times: 25, timesInShort: 1, inject: restart('SIGKILL') },
  { name: 'PostgreSQL restarted, immediate', times: 25, timesInShort: 0, inject: restart('SIGQUIT') },
  { name: 'PostgreSQL restarted, fast', times: 25, timesInShort: 1, inject: restart('SIGINT') },
  { name: 'PostgreSQL restarted, smart, then fast', times: 20, timesInShort: 0, inject: restart('SIGTERM', 'SIGINT') },
  { name: 'PostgreSQL suspended for 5 s', times: 25, timesInShort: 1, inject: suspend },
  { ...cut('before the response'), times: 190, timesInShort: 2 },
  { ...cut('after the response'), times: 190, timesInShort: 2 },
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

/** Kills a gateway and starts it again. */
export function killGateway({ gateways, random }: Pick<Disturbed, 'gateways' | 'random'>): Promise<void> {
  return random.pick(gateways).crash();
}

const smartStopMs = 2_000;

/**
 * Ends the server with a signal. A second signal follows two seconds later, for a server that is still running. The
 * process that started the server starts it again. Resolves when the server accepts queries again.
 */
export function restart(signal: NodeJS.Signals, secondSignal?: NodeJS.Signals) {
  return async (disturbed: Pick<Disturbed, 'server' | 'signal'>) => {
    const { server } = disturbed;
    const pid = Number(server.pid());
    process.kill(pid, signal);
    if (secondSignal !== undefined) {
      // A smart shutdown waits for the clients, and the gateways stay connected.
      await sleep(smartStopMs);
      trySignal(pid, secondSignal);
    }
    await waitUntilBack(disturbed, () => server.pid() !== pid);
  };
}

async function waitUntilBack(
  { server, signal }: Pick<Disturbed, 'server' | 'signal'>,
  isExpected = () => true,
): Promise<void> {
  while (!(await runQuery(server.url, 'select').then(isExpected, () => false))) await sleep(50, undefined, { signal });
}

/**
 * Suspends all processes of the server and then continues them, as a host that swaps or pauses a virtual machine does.
 */
async function suspend({ server }: Disturbed): Promise<void> {
  const pid = Number(server.pid());
  signalServer(pid, 'SIGSTOP');
  try {
    await sleep(5_000);
  } finally {
    signalServer(pid, 'SIGCONT');
  }
}

function cut(when: 'before the response' | 'after the response') {
  const name = `cut ${when}` as const;
  return { name, readsResponses: true as const, inject: disturbConnection(name) };
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

/** Takes all connections that the server allows, including those that the gateways had. */
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
  // The server may have crashed, because it could not write its write-ahead log.
  await waitUntilBack(disturbed);
}
