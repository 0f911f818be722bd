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
    // Nobody needs this data after a crash, plans depend on no statistics but a test's own, and files run at the same time.
    const settings = { fsync: 'off', autovacuum: 'off', max_connections: '300', shared_buffers: '128MB' };
    const server = await startTestServer(settings);
    stop = server.stop;
    process.env[testServerVariable] = server.url;
    return teardown;
  } catch (error) {
    await teardown();
    throw error;
  }
}
