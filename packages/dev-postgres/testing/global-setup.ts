import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openCluster } from '../src/cluster.ts';
import { startTestServer, testClusterVariable, testServerVariable } from './testing.ts';

/** For vitest: starts the server that all test files share, unless the environment names one. */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[testServerVariable] !== undefined) return undefined;
  const clusterFolder = await mkdtemp(join(tmpdir(), 'gateway-test-cluster-'));
  let stop = async () => {};
  const teardown = async () => {
    delete process.env[testServerVariable];
    delete process.env[testClusterVariable];
    await stop();
    await rm(clusterFolder, { recursive: true, force: true });
  };
  try {
    await openCluster(clusterFolder);
    process.env[testClusterVariable] = clusterFolder;
    // Nobody needs this data after a crash. Test files run at the same time, each with connections of its own.
    const server = await startTestServer({ fsync: 'off', max_connections: '300', shared_buffers: '128MB' });
    stop = server.stop;
    process.env[testServerVariable] = server.url;
    return teardown;
  } catch (error) {
    await teardown();
    throw error;
  }
}
