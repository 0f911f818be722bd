import type { Operation, OperationDeps } from '../orders/operation.ts';
import { getBrandOperation } from './brand/get-brand.ts';
import { updateBrandOperation } from './brand/update-brand.ts';
import { cancelOrderOperation } from './cancel-order.ts';
import { createClientSecretOperation } from './client-secrets/create-client-secret.ts';
import { listClientSecretsOperation } from './client-secrets/list-client-secrets.ts';
import { revokeClientSecretOperation } from './client-secrets/revoke-client-secret.ts';
import { createOrderOperation } from './create-order.ts';
import { endPaymentOperation } from './end-payment.ts';
import { getOrderOperation } from './get-order.ts';
import { listEventsOperation } from './list-events.ts';
import { listOrdersOperation } from './list-orders.ts';
import { recordPaymentOperation } from './record-payment.ts';
import { resolvePaymentLinkOperation } from './resolve-payment-link.ts';
import { startPaymentOperation } from './start-payment.ts';
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
