import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Credentials } from '@order-gateway/domain/accounts';
import { JsonNumber, loadFixtures, type Members } from '@order-gateway/fixtures';
import type { GatewayAddresses } from '@order-gateway/fixtures/wire';
import { shownReversals } from '@order-gateway/order-model/observed';
import { expect } from 'vitest';
import { operationCall } from '../../src/load/calls/call-maker.ts';
import { openSender } from '../../src/load/calls/sender.ts';

/** The accounts of the orders. */
interface Accounts {
  readonly merchant: Credentials;
  readonly checkout: Credentials;
}

/** An order with refunds and disputes. */
interface RefundedOrder {
  readonly orderId: string;
  readonly orderToken: string;
  /** When it was created, and paid. */
  readonly createdAt: string;
  /** The refunds and disputes that it has. */
  readonly reversals: readonly string[];
}

/** The orders of an upgrade: one that is paid, and two unpaid ones, each with a refused payment that was refunded. */
export interface RefundedOrders {
  readonly paid: RefundedOrder;
  readonly toPay: RefundedOrder;
  readonly toCancel: RefundedOrder;
}

const money = { order_amount: new JsonNumber('49.99'), order_currency: 'EUR' };

/** Returns the calls of a merchant and a checkout system, which expect an outcome. */
function callsOf(target: GatewayAddresses, { merchant, checkout }: Accounts) {
  const sender = openSender(target, 1);
  const call = async (
    operation: Parameters<typeof operationCall>[0],
    orderId: string,
    request: Members,
    outcome: string,
  ) => {
    const isCheckouts = operation.startsWith('Record') || operation === 'StartPayment';
    const account = isCheckouts ? checkout : merchant;
    const order = { number: 0, orderId };
    const reply = await sender.send(operationCall(operation, request, { protocol: 'grpc', account, order }));
    expect([operation, orderId, reply.outcome]).toEqual([operation, orderId, outcome]);
    return reply.orders?.[0];
  };
  return { call, close: () => sender.close() };
}

/** Creates orders with refunds and disputes in the new version. */
export async function createRefundedOrders(
  target: GatewayAddresses,
  accounts: Accounts,
  step: number,
): Promise<RefundedOrders> {
  const { call, close } = callsOf(target, accounts);
  const { validOrder } = await loadFixtures();
  const create = async (name: string) => {
    const orderId = `refunded-${step}-${name}`;
    const texts = Object.entries(validOrder).filter(([, value]) => typeof value === 'string');
    const shown = await call(
      'CreateOrder',
      orderId,
      { ...Object.fromEntries(texts), order_id: orderId, ...money },
      'created',
    );
    const payment = { order_token: shown?.order_token ?? '', payment_id: `first-of-${orderId}` };
    return { orderId, payment, paid_at: shown?.created_at ?? '' };
  };
  const withReversals = async (orderId: string): Promise<RefundedOrder> => {
    const shown = await call('GetOrder', orderId, { order_id: orderId }, 'ok');
    if (shown === undefined) throw new Error(`${orderId} was not found`);
    const { order_token: orderToken = '', created_at: createdAt = '' } = shown;
    return { orderId, orderToken, createdAt, reversals: shownReversals(shown) };
  };
  const unpaid = async (name: string) => {
    const { orderId, payment, paid_at } = await create(name);
    const wrong = { ...payment, paid_at, ...money, order_amount: new JsonNumber('1.00') };
    await call('RecordPayment', orderId, wrong, 'payment_mismatch');
    const refund = { provider_refund_id: `given-back-${orderId}`, amount: new JsonNumber('1.00'), status: 'SUCCEEDED' };
    await call('RecordRefund', orderId, { ...payment, ...refund }, 'ok');
    return withReversals(orderId);
  };
  const { orderId, payment, paid_at } = await create('paid');
  await call('RecordPayment', orderId, { ...payment, paid_at, ...money }, 'ok');
  const refund = { refund_id: `refund-${step}`, refund_amount: new JsonNumber('10.00') };
  await call('CreateRefund', orderId, { order_id: orderId, ...refund }, 'created');
  await call(
    'CreateRefund',
    orderId,
    { order_id: orderId, refund_id: `pending-${step}`, refund_amount: new JsonNumber('5.00') },
    'created',
  );
  const made = { refund_id: refund.refund_id, provider_refund_id: `made-${orderId}`, amount: refund.refund_amount };
  await call('RecordRefund', orderId, { ...payment, ...made, status: 'SUCCEEDED' }, 'ok');
  const dispute = { dispute_id: `dispute-${step}`, amount: new JsonNumber('20.00'), currency: 'EUR', status: 'OPEN' };
  await call('RecordDispute', orderId, { ...payment, ...dispute }, 'ok');
  const orders = {
    paid: await withReversals(orderId),
    toPay: await unpaid('to-pay'),
    toCancel: await unpaid('to-cancel'),
  };
  close();
  return orders;
}

/**
 * Writes these orders in the version 1.0.0, which does not know refunds and disputes. Expects that every call works.
 */
export async function writeRefundedOrders(
  target: GatewayAddresses,
  accounts: Accounts,
  { paid, toPay, toCancel }: RefundedOrders,
): Promise<void> {
  const { call, close } = callsOf(target, accounts);
  const first = ({ orderId, orderToken, createdAt }: RefundedOrder) => ({
    order_token: orderToken,
    payment_id: `first-of-${orderId}`,
    paid_at: createdAt,
    ...money,
  });
  const second = (order: RefundedOrder) => ({ ...first(order), payment_id: `second-of-${order.orderId}` });
  await call('RecordPayment', paid.orderId, first(paid), 'replayed');
  await call('RecordPayment', paid.orderId, second(paid), 'order_already_paid');
  await call('CancelOrder', paid.orderId, { order_id: paid.orderId }, 'order_already_paid');
  const attempt = { order_token: toPay.orderToken, attempt_id: 'attempt', lease_seconds: new JsonNumber('60') };
  await call('StartPayment', toPay.orderId, attempt, 'ok');
  await call('RecordPayment', toPay.orderId, second(toPay), 'ok');
  await call('CancelOrder', toCancel.orderId, { order_id: toCancel.orderId }, 'ok');
  for (const { orderId } of [paid, toPay, toCancel]) await call('GetOrder', orderId, { order_id: orderId }, 'ok');
  close();
}

/** Expects that the new version shows the refunds and disputes as they were before the rollback. */
export async function expectRefunds(
  target: GatewayAddresses,
  accounts: Accounts,
  orders: RefundedOrders,
): Promise<void> {
  const { call, close } = callsOf(target, accounts);
  for (const { orderId, reversals } of [orders.paid, orders.toPay, orders.toCancel]) {
    const shown = await call('GetOrder', orderId, { order_id: orderId }, 'ok');
    expect([orderId, shown && shownReversals(shown)]).toEqual([orderId, reversals]);
  }
  close();
}

/**
 * Expects that the SDK of the release in `tree` works on a server of any version. Returns the types of all events of
 * the merchant.
 */
export async function useReleasedClient(
  tree: string,
  { httpUrl: baseUrl }: GatewayAddresses,
  { merchant }: Accounts,
  { paid, toCancel }: RefundedOrders,
): Promise<string[]> {
  const { createClient } = await import(pathToFileURL(join(tree, 'packages/client/src/index.ts')).href);
  const client = createClient({ baseUrl, ...merchant });
  expect(await client.getOrder(paid.orderId)).toMatchObject({ order_id: paid.orderId, order_status: 'PAID' });
  await expect(client.cancelOrder(paid.orderId)).rejects.toMatchObject({ code: 'order_already_paid' });
  expect(await client.getOrder(toCancel.orderId)).toMatchObject({ order_id: toCancel.orderId });
  const { value: newest } = await client.listOrders().next();
  expect(newest).toHaveProperty('order_token');
  const types: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await client.listEvents({ cursor, limit: 100 });
    types.push(...page.events.map(({ type }: { readonly type: string }) => type));
    if (page.events.length === 0) return types;
    cursor = page.next_cursor;
  }
}
