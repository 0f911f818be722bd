import type { Operation } from '../calls/operation.ts';
import { brandOperations } from './brands.ts';
import { credentialOperations } from './credentials.ts';
import { eventOperations } from './events.ts';
import { orderOperations } from './orders.ts';
import { paymentOperations } from './payments.ts';
import type { OperationDeps } from './service.ts';
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
