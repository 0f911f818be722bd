import { type Client, ConnectError } from '@connectrpc/connect';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { BadRequestSchema } from '@gateway/contract/google/rpc/error_details_pb';
import { orderFieldNames } from '@gateway/domain/order-fields';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import naughtyStrings from 'big-list-of-naughty-strings/blns.json' with { type: 'json' };
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { grpcClient } from '../helpers/rpc-clients.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { orderMessage, postOrder } from '../helpers/send-order.ts';

/** Texts that are known to break software, and those that would hurt here. */
const texts: readonly string[] = [
  ...naughtyStrings,
  ...['\u0000', '\u202eabc', '\ufeff', "'; drop table orders; --", '{"a","b"}', '\\', '"', '\\"', '{}', 'NULL', 'a|b'],
  ...['\u{1f1fa}\u{1f1f3}', '\\|', '%00', '../../etc/passwd', '=1+1', '\r\nSet-Cookie: a=b', '{{1+1}}', '\u0085'],
  ...['\ud7ff', '\u{10ffff}'],
];

const freeTextFields = orderFieldNames.filter(
  (name) => !['order_id', 'order_amount', 'order_currency', 'service_type'].includes(name),
);

const gateway = useGateway();
let sql: postgres.Sql;
let client: Client<typeof OrderService>;
beforeAll(async () => {
  sql = postgres(gateway.databaseUrl, { max: 1 });
  client = grpcClient(OrderService, gateway);
});
afterAll(() => sql?.end({ timeout: 1 }));

type Send = (orderId: string, fields: Record<string, string>) => Promise<string[]>;

/** Sends an order and gives the names of the rejected fields; none where it was taken. */
const overJson: Send = async (orderId, fields) => {
  const response = await postOrder(gateway, validOrderInput({ order_id: orderId, ...fields }));
  const answer = (await response.json()) as { errors?: { field: string }[] };
  expect(response.status).toBe(answer.errors === undefined ? 201 : 400);
  return answer.errors?.map(({ field }) => field) ?? [];
};

const overGrpc: Send = async (orderId, fields) => {
  try {
    await client.createOrder(orderMessage(orderId, fields), { headers: gateway.headers });
    return [];
  } catch (error) {
    const violations = ConnectError.from(error).findDetails(BadRequestSchema);
    expect(violations.length, String(error)).toBe(1);
    return violations.flatMap(({ fieldViolations }) => fieldViolations.map(({ field }) => field));
  }
};

/** Sixteen at a time, so that they share inserts. */
async function inParallel<Item>(items: Item[], work: (item: Item) => Promise<unknown>): Promise<void> {
  const left = items.values();
  const workOn = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: 16 }, workOn));
}

test.each([
  ['JSON', overJson],
  ['gRPC', overGrpc],
])('over %s every text is stored as it was sent, or its field is rejected by name', async (protocol, send) => {
  let stored = 0;
  await inParallel([...texts.entries()], async ([index, text]) => {
    const orderId = `naughty-${protocol}-${index}`;
    const everywhere = Object.fromEntries(freeTextFields.map((name) => [name, text]));
    const rejected = await send(orderId, everywhere);
    expect(rejected.length, JSON.stringify(text)).toBeGreaterThan(0);
    const taken = freeTextFields.filter((name) => !rejected.includes(name));
    const withTaken = Object.fromEntries(taken.map((name) => [name, text]));
    expect(await send(orderId, withTaken), JSON.stringify(text)).toEqual([]);
    const rows = await sql`select * from orders where order_id = ${orderId}`;
    expect(rows.map((row) => Object.fromEntries(taken.map((name) => [name, row[name]])))).toEqual([withTaken]);
    stored += taken.length;
  });
  expect(stored).toBeGreaterThan(texts.length);
});

test.each([
  ['JSON', overJson],
  ['gRPC', overGrpc],
])('over %s every text is an order_id of its own, or rejected as one', async (_, send) => {
  const taken: string[] = [];
  await inParallel([...new Set(texts)], async (text) => {
    const rejected = await send(text, { order_note: `over ${_}` }).catch((error: unknown) => [String(error)]);
    if (rejected.length > 0) return expect(rejected, JSON.stringify(text)).toEqual(['order_id']);
    taken.push(text);
    expect((await sql`delete from orders where order_id = ${text}`).count).toBe(1);
  });
  expect(taken.length).toBeGreaterThan(300);
});
