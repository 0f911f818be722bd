import { startTestServer, testServerVariable } from './testing.ts';

/** For vitest: starts the server that all test files share, unless the environment names one. */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[testServerVariable] !== undefined) return undefined;
  // Nobody needs this data after a crash. Test files run at the same time, each with connections of its own.
  const server = await startTestServer({ fsync: 'off', max_connections: '300', shared_buffers: '128MB' });
  process.env[testServerVariable] = server.url;
  return async () => {
    delete process.env[testServerVariable];
    await server.stop();
  };
}
