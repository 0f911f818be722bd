import type { Operation, OperationDeps } from '../orders/operation.ts';
import { cancelOrderOperation } from './cancel-order.ts';
import { createOrderOperation } from './create-order.ts';
import { getOrderOperation } from './get-order.ts';
import { listEventsOperation } from './list-events.ts';
import { listOrdersOperation } from './list-orders.ts';
import { recordPaymentOperation } from './record-payment.ts';
import { resolvePaymentLinkOperation } from './resolve-payment-link.ts';

/** All operations of the API. */
export function createOperations(deps: OperationDeps): readonly Operation[] {
  return [
    createOrderOperation(deps),
    getOrderOperation(deps),
    cancelOrderOperation(deps),
    listOrdersOperation(deps),
    listEventsOperation(deps),
    resolvePaymentLinkOperation(deps),
    recordPaymentOperation(deps),
  ];
}
