import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';

// This module runs in the browser, in a page of the gateway's origin.

/** Looks up an order and lists orders with connect-web, in each encoding. Returns the ids it receives. */
export async function readOrders(baseUrl: string, headers: Record<string, string>, orderId: string) {
  const orderIds = [];
  for (const useBinaryFormat of [false, true]) {
    const transport = createConnectTransport({ baseUrl, useBinaryFormat, useHttpGet: true });
    const client = createClient(OrderService, transport);
    const { order } = await client.getOrder({ order: { case: 'orderId', value: orderId } }, { headers });
    const { orders } = await client.listOrders({}, { headers });
    orderIds.push([order?.orderId, orders.map((listed) => listed.orderId)]);
  }
  return orderIds;
}
