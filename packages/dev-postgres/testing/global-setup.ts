import { accessSync, constants, statfsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepareCluster } from '../src/cluster.ts';
import { createServerFolder, startTestServer, testClusterVariable, testServerVariable } from './testing.ts';

/** Free memory required to keep the files in memory: several times what a run needs. */
const requiredBytes = 8 * 2 ** 30;

/**
 * Returns the folder for the files of a run. Unless TMPDIR is set, it is in memory if enough memory is free, because
 * each cluster consists of a thousand small files.
 */
function parentFolder(): string {
  const memory = '/dev/shm';
  if (process.env.TMPDIR !== undefined) return tmpdir();
  try {
    accessSync(memory, constants.W_OK);
    const { bavail, bsize } = statfsSync(memory);
    return Math.min(bavail * bsize, process.availableMemory()) > requiredBytes ? memory : tmpdir();
  } catch {
    return tmpdir(); // /dev/shm is missing, or this user cannot write to it.
  }
}

/**
 * The global setup for vitest. Starts the server that all test files share, and creates a temporary folder for the run,
 * which is removed at any end of the run. Does nothing if the environment already names a server.
 */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[testServerVariable] !== undefined) return undefined;
  const { dataDir: folder, remove } = await createServerFolder(parentFolder());
  process.env.TMPDIR = folder;
  let stop = async () => {};
  const teardown = async () => {
    delete process.env[testServerVariable];
    delete process.env[testClusterVariable];
    await stop();
    await remove();
  };
  try {
    const { data } = await prepareCluster(folder);
    // Keeps dynamic shared memory in the data folder, because a killed server would leave it in /dev/shm.
    await appendFile(join(data, 'postgresql.conf'), 'dynamic_shared_memory_type = mmap\n');
    process.env[testClusterVariable] = folder;
    const settings = {
      // The data need not survive a crash.
      fsync: 'off',
      // Query plans must depend only on the statistics that a test collects itself.
      autovacuum: 'off',
      // Test files run concurrently.
      max_connections: '300',
      shared_buffers: '128MB',
      max_wal_size: '256MB',
    };
    const server = await startTestServer(settings);
    stop = server.stop;
    process.env[testServerVariable] = server.url;
    return teardown;
  } catch (error) {
    await teardown();
    throw error;
  }
}
