import { env } from 'node:process';

// The fast path compared with Connect's own handler over more calls.
env.FAST_PATH_CALLS = '10000';
await import('./grpc-fast-path.test.ts');
