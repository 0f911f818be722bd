import { setTimeout as sleep } from 'node:timers/promises';
import { withSession } from '@order-gateway/dev-postgres/testing';
import type { BareServer } from '@order-gateway/dev-postgres/testing/bare-server';
import type { CitusCluster } from '@order-gateway/dev-postgres/testing/citus';
import type { FaultOf } from '../faults/faults.ts';

/** A cluster whose workers can be disturbed. */
export interface CitusTarget {
  readonly cluster: CitusCluster;
  /** `isAffected` returns whether the fault in progress affects a merchant. Between faults, it is `undefined`. */
  readonly current: { isAffected?: ((clientId: string) => boolean) | undefined };
}

/** The faults of a worker, and the move of a shard to another worker. */
export const citusFaults: readonly FaultOf<CitusTarget>[] = [
  disturbWorker('worker crashed', async (worker) => {
    worker.kill();
    await sleep(1_000);
    await worker.start();
  }),
  disturbWorker('worker stopped for 2 s', async (worker) => {
    // A busy worker may not stop in time. An operator would then also kill it.
    await worker.stop().catch(worker.kill);
    await sleep(2_000);
    await worker.start();
  }),
  // 6 s is longer than the deadline of a call.
  disturbWorker('worker suspended for 6 s', async (worker) => {
    worker.hang();
    await sleep(6_000);
    worker.resume();
  }),
  { name: 'shard moved', inject: moveShard },
];

function disturbWorker(name: string, disturb: (worker: BareServer) => Promise<void>): FaultOf<CitusTarget> {
  return {
    name,
    async inject({ cluster, current, random }) {
      const worker = random.pick(cluster.workers as [BareServer]);
      const placements = await placementsOf(cluster);
      current.isAffected = (clientId) => placements.get(clientId)?.port === worker.port;
      try {
        await disturb(worker);
      } finally {
        current.isAffected = undefined;
      }
    },
  };
}

async function moveShard({ cluster, current, random }: Parameters<FaultOf<CitusTarget>['inject']>[0]): Promise<void> {
  const placements = await placementsOf(cluster);
  const { shard, port } = random.pick([...placements.values()] as [Placement]);
  const target = cluster.workers.find((worker) => worker.port !== port)?.port ?? 0;
  current.isAffected = (clientId) => placements.get(clientId)?.shard === shard;
  try {
    await withSession(
      cluster.url,
      (session) => session`select citus_move_shard_placement(${shard}, '127.0.0.1', ${port}, '127.0.0.1', ${target})`,
    );
  } finally {
    current.isAffected = undefined;
  }
}

interface Placement {
  readonly shard: string;
  readonly port: number;
}

/** Returns the shard of each merchant's orders and the port of its worker, by client id. */
export async function placementsOf({ url }: Pick<CitusCluster, 'url'>): Promise<ReadonlyMap<string, Placement>> {
  const rows = await withSession(
    url,
    (session) => session`select client_id, shardid, nodeport from accounts
      join pg_dist_placement on shardid = get_shard_id_for_distribution_column('orders', id)
      join pg_dist_node using (groupid) where kind = 'merchant'`,
  );
  return new Map(rows.map(({ client_id, shardid, nodeport }) => [client_id, { shard: shardid, port: nodeport }]));
}
