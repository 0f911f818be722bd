import { getBrandOperation } from './brands/get-brand.ts';
import { updateBrandOperation } from './brands/update-brand.ts';
import { createClientSecretOperation } from './credentials/create-client-secret.ts';
import { listClientSecretsOperation } from './credentials/list-client-secrets.ts';
import { revokeClientSecretOperation } from './credentials/revoke-client-secret.ts';
import { listEventsOperation } from './events/list-events.ts';
import type { Operation, OperationDeps } from './operation.ts';
import { cancelOrderOperation } from './orders/cancel-order.ts';
import { createOrderOperation } from './orders/create-order.ts';
import { getOrderOperation } from './orders/get-order.ts';
import { listOrdersOperation } from './orders/list-orders.ts';
import { endPaymentOperation } from './payments/end-payment.ts';
import { recordPaymentOperation } from './payments/record-payment.ts';
import { resolvePaymentLinkOperation } from './payments/resolve-payment-link.ts';
import { startPaymentOperation } from './payments/start-payment.ts';
import { createWebhookEndpointOperation } from './webhooks/create-webhook-endpoint.ts';
import { deleteWebhookEndpointOperation } from './webhooks/delete-webhook-endpoint.ts';
import { getWebhookEndpointOperation } from './webhooks/get-webhook-endpoint.ts';
import { listWebhookDeliveriesOperation } from './webhooks/list-webhook-deliveries.ts';
import { listWebhookEndpointsOperation } from './webhooks/list-webhook-endpoints.ts';
import { pingWebhookEndpointOperation } from './webhooks/ping-webhook-endpoint.ts';
import { redeliverFailedWebhooksOperation } from './webhooks/redeliver-failed-webhooks.ts';
import { redeliverWebhookOperation } from './webhooks/redeliver-webhook.ts';
import { rotateWebhookSecretOperation } from './webhooks/rotate-webhook-secret.ts';
import { updateWebhookEndpointOperation } from './webhooks/update-webhook-endpoint.ts';

/** All operations of the API. */
export function createOperations(deps: OperationDeps): readonly Operation[] {
  return [
    createOrderOperation(deps),
    getOrderOperation(deps),
    cancelOrderOperation(deps),
    listOrdersOperation(deps),
    listEventsOperation(deps),
    createWebhookEndpointOperation(deps),
    getWebhookEndpointOperation(deps),
    listWebhookEndpointsOperation(deps),
    updateWebhookEndpointOperation(deps),
    deleteWebhookEndpointOperation(deps),
    pingWebhookEndpointOperation(deps),
    rotateWebhookSecretOperation(deps),
    listWebhookDeliveriesOperation(deps),
    redeliverWebhookOperation(deps),
    redeliverFailedWebhooksOperation(deps),
    createClientSecretOperation(deps),
    listClientSecretsOperation(deps),
    revokeClientSecretOperation(deps),
    getBrandOperation(deps),
    updateBrandOperation(deps),
    resolvePaymentLinkOperation(deps),
    startPaymentOperation(deps),
    endPaymentOperation(deps),
    recordPaymentOperation(deps),
  ];
}
