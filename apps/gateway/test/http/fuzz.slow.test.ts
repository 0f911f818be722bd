import { afterAll, expect, test } from 'vitest';
import { fuzz } from '../helpers/attacks/fuzz.ts';
import { endProcesses, newClusterDir, sampleMemory, startProcess } from '../helpers/gateway-process.ts';

/** Memory may grow by this much after the first third of the run: heap that has not been collected yet, and buffers. */
const growthMaxMiB = 96;

afterAll(endProcesses);

test('100,000 mutated bodies and messages neither stop a gateway nor make its memory grow', async () => {
  const gateway = await startProcess({ DATA_DIR: await newClusterDir() });
  const target = { ...gateway, credentials: await gateway.demoCredentials() };
  const memory = sampleMemory(gateway.child, 1_000);
  const { FUZZ_SEED } = process.env;
  await fuzz(target, 100_000, FUZZ_SEED ? Number(FUZZ_SEED) : undefined);
  expect([gateway.child.exitCode, gateway.child.signalCode]).toEqual([null, null]);
  const third = Math.ceil(memory.length / 3);
  const growth = Math.max(...memory.slice(-third)) - Math.max(...memory.slice(0, third));
  expect(growth).toBeLessThanOrEqual(growthMaxMiB);
});
