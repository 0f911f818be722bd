import { partition } from '@order-gateway/postgres/testing/partitioned-database';
import { expect, onTestFinished, test } from 'vitest';
import { startOwnGateway } from '../../src/gateway/own-gateway.ts';
import { testDatabase } from '../test-database.ts';
import { goodputOf, runFlood } from './run-flood.ts';

const rounds = 7;
const merchants = Array.from({ length: 40 }, (_, index) => ({ name: `Merchant ${index}` }));
const peakOptions = { protocol: 'json', rate: 100_000, seconds: 3, connections: 64 } as const;

async function startGateway(isPartitioned: boolean) {
  const gateway = await startOwnGateway(merchants, new AbortController().signal, testDatabase);
  onTestFinished(() => gateway.stop());
  if (isPartitioned) await partition(gateway.databaseUrl);
  return async () => goodputOf(await runFlood(gateway, { ...peakOptions, credentials: gateway.credentials }));
}

const medianOf = (values: readonly number[]) => values.toSorted((a, b) => a - b)[(values.length - 1) / 2] ?? Number.NaN;

test('with hash partitions, a gateway creates at least 90 % as many orders per second as without them', async () => {
  const [measurePlain, measurePartitioned] = [await startGateway(false), await startGateway(true)];
  const [plain, partitioned]: [number[], number[]] = [[], []];
  // The first round compiles the code.
  await Promise.all([measurePlain(), measurePartitioned()]);
  for (let round = 0; round < rounds; round += 1) {
    plain.push(await measurePlain());
    partitioned.push(await measurePartitioned());
  }
  const ratio = medianOf(partitioned) / medianOf(plain);
  process.stdout.write(`orders/s: ${medianOf(plain)}, on partitions ${medianOf(partitioned)}: ${ratio.toFixed(2)}\n`);
  expect(ratio).toBeGreaterThan(0.9);
});
