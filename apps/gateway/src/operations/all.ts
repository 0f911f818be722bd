import { brandOperations } from './brands.ts';
import { credentialOperations } from './credentials.ts';
import { eventOperations } from './events.ts';
import type { Operation, OperationDeps } from './operation.ts';
import { orderOperations } from './orders.ts';
import { paymentOperations } from './payments.ts';
import { webhookOperations } from './webhooks.ts';

/** Creates all operations of the API, except the streaming one (`createWatchEvents`). */
export function createOperations(deps: OperationDeps): readonly Operation[] {
  return [
    ...orderOperations(deps),
    ...eventOperations(deps),
    ...webhookOperations(deps),
    ...credentialOperations(deps),
    ...brandOperations(deps),
    ...paymentOperations(deps),
  ];
}
