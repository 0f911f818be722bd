import { expect, test } from 'vitest';
import { fuzz } from '../helpers/attacks/fuzz.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { postOrder } from '../helpers/send-order.ts';

const gateway = useGateway();

test('1,500 mutated bodies and messages each get a response, and none is an internal error', async () => {
  const responses = await fuzz(gateway, 1_500);
  expect([...responses]).toEqual(expect.arrayContaining(['http 201', 'http 400', 'grpc 0', 'grpc 3']));
  expect(gateway.errors).toEqual([]);
  expect((await postOrder(gateway)).status).toBe(201);
});
