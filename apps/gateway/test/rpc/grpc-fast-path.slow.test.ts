import { env } from 'node:process';

// Compares the fast path with Connect's handler over more calls.
env.FAST_PATH_CALLS = '10000';
await import('./grpc-fast-path.test.ts');
