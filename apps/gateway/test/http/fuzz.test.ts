import { expect, test } from 'vitest';
import { fuzz } from '../helpers/fuzz.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { postOrder } from '../helpers/send-order.ts';

const gateway = useGateway();

test('1,500 mutated bodies and messages get a response, and no internal error', async () => {
  const seed = Math.floor(Math.random() * 1_000_000);
  const { responses, bad } = await fuzz(gateway, { seed, count: 1_500 });
  expect(bad, `FUZZ_SEED=${seed} pnpm test:slow fuzz repeats this`).toEqual([]);
  expect(Object.values(responses).reduce((sum, count) => sum + count, 0)).toBe(1_500);
  expect(Object.keys(responses)).toEqual(expect.arrayContaining(['http 201', 'http 400', 'grpc 0', 'grpc 3']));
  expect(gateway.errors).toEqual([]);
  expect((await postOrder(gateway)).status).toBe(201);
});
