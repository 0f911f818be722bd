import { afterAll, expect, test } from 'vitest';
import { fuzz } from '../helpers/fuzz.ts';
import { endProcesses, newClusterDir, residentMiB, startProcess } from '../helpers/gateway-process.ts';

// FUZZ_SEED=N FUZZ_FIRST=N FUZZ_COUNT=1 repeats one input.
const { FUZZ_SEED, FUZZ_FIRST = '0', FUZZ_COUNT = '100000' } = process.env;

/** Memory may grow by this much after the first third: heap that is not collected yet, and buffers. */
const growthMaxMiB = 96;

afterAll(endProcesses);

test(`${FUZZ_COUNT} mutated bodies and messages neither stop a gateway nor make its memory grow`, async () => {
  const seed = Number(FUZZ_SEED ?? Math.floor(Math.random() * 1_000_000));
  const gateway = await startProcess({ DATA_DIR: await newClusterDir() });
  const target = {
    ...{ url: gateway.url, grpcPort: gateway.grpcPort },
    credentials: await gateway.demoCredentials(),
  };
  const memory: number[] = [];
  const onProgress = () => memory.push(residentMiB(gateway.child.pid));
  const { bad } = await fuzz(target, { seed, count: Number(FUZZ_COUNT), first: Number(FUZZ_FIRST), onProgress });
  expect(bad, `FUZZ_SEED=${seed} repeats this`).toEqual([]);
  expect([gateway.child.exitCode, gateway.child.signalCode]).toEqual([null, null]);
  if (memory.length < 6) return;
  const growth = Math.max(...memory.slice(-3)) - Math.max(...memory.slice(0, Math.ceil(memory.length / 3)));
  expect(growth).toBeLessThanOrEqual(growthMaxMiB);
});
