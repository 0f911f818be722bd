import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import type { AccountId } from '@order-gateway/domain/accounts';
import { eventIdForm } from '@order-gateway/domain/events';
import type { Failure } from '@order-gateway/domain/failure';
import type { Managed } from '@order-gateway/domain/management';
import { formatOptionalTime, formatTime } from '@order-gateway/domain/orders';
import { parseCompleteList } from '@order-gateway/domain/requests';
import { failed, type Result, success } from '@order-gateway/domain/result';
import {
  allEventTypes,
  deliveryStatusOf,
  endpointIdForm,
  parseDeliveryList,
  parseEndpoint,
  parseFailedSince,
  redeliveredMax,
  returnSigner,
  type WebhookDelivery,
  type WebhookEndpoint,
} from '@order-gateway/domain/webhooks';
import { type AllowedAddresses, urlProblem } from '@order-gateway/runtime/ip-address';
import type { Members, Operation, Reply, Success } from '../calls/operation.ts';
import { newSigningSecret } from '../runtime/secrets/signing-secrets.ts';
import { type Manager, managementOperations, notFound, readId } from './management.ts';
import type { OperationDeps } from './service.ts';

type WebhookDeps = Pick<OperationDeps, 'management' | 'signingSecrets' | 'webhookAddresses' | 'ping'>;

/** An endpoint, and whether its secret signs the merchant's return URLs. */
interface FoundEndpoint {
  readonly endpoint: WebhookEndpoint;
  readonly signsReturns: boolean;
}

const endpointNotFound = failed(notFound('webhook_endpoint'));

const notConfigured = failed({ kind: 'webhooks_not_configured' });

export function webhookOperations(deps: WebhookDeps): Operation[] {
  const { signingSecrets, webhookAddresses, ping } = deps;
  return managementOperations(deps, WebhookService, {
    async createWebhookEndpoint({ url: sentUrl, event_types }, { account, manage }) {
      const parsed = parseEndpoint({ url: sentUrl, event_types }, true);
      if (!parsed.ok) return parsed;
      const { url = '', eventTypes } = parsed.value;
      const notAllowed = urlFailure(url, webhookAddresses);
      if (notAllowed !== undefined) return failed(notAllowed);
      if (signingSecrets === undefined) return notConfigured;
      const { secret, stored } = newSigningSecret(signingSecrets, account.id);
      return manage(async (managed) => {
        const endpointId = await managed.create(account.id, { url, eventTypes, signingSecret: stored });
        if (endpointId === undefined) return failed({ kind: 'too_many_endpoints' });
        return endpointReply(await findEndpoint(managed, account.id, endpointId), 'created', secret);
      });
    },

    getWebhookEndpoint: ofEndpoint((id, { account, manage }) =>
      manage(async (managed) => endpointReply(await findEndpoint(managed, account.id, id))),
    ),

    async listWebhookEndpoints(members, { account, manage }) {
      const parsed = parseCompleteList(members);
      if (!parsed.ok) return parsed;
      return manage(async (managed) => {
        const endpoints = await listEndpoints(managed, account.id);
        return success({ body: { endpoints: endpoints.map((found) => endpointResponse(found)) }, outcome: 'ok' });
      });
    },

    updateWebhookEndpoint: ofEndpoint(async (id, { account, manage }, members) => {
      const parsed = parseEndpoint(members, false);
      if (!parsed.ok) return parsed;
      const settings = parsed.value;
      const notAllowed = settings.url === undefined ? undefined : urlFailure(settings.url, webhookAddresses);
      if (notAllowed !== undefined) return failed(notAllowed);
      const isChange = Object.values(settings).some((value) => value !== undefined);
      return manage(async (managed) => {
        if (isChange) await managed.update(account.id, id, settings);
        return endpointReply(await findEndpoint(managed, account.id, id));
      });
    }),

    deleteWebhookEndpoint: ofEndpoint((id, { account, manage }) =>
      manage(async (managed) =>
        (await managed.remove(account.id, id)) ? success({ body: {}, outcome: 'ok' }) : endpointNotFound,
      ),
    ),

    pingWebhookEndpoint: ofEndpoint(async (id, { account, manage }) => {
      const found = await manage((managed) => findEndpoint(managed, account.id, id));
      if (!found.ok) return found;
      const { url, signingSecret, previousSecret } = found.value.endpoint;
      const secret = signingSecrets?.decrypt(account.id, signingSecret);
      if (secret === undefined) return notConfigured;
      const previous = previousSecret === null ? undefined : signingSecrets?.decrypt(account.id, previousSecret);
      const sent = await ping(account.id, url, previous === undefined ? [secret] : [secret, previous]);
      if (!sent.ok) return sent;
      const { status = 0, text } = sent.value;
      return success({ body: { delivered: status >= 200 && status < 300, result: text }, outcome: 'ok' });
    }),

    rotateWebhookSecret: ofEndpoint(async (id, { account, manage }) => {
      if (signingSecrets === undefined) return notConfigured;
      const { secret, stored } = newSigningSecret(signingSecrets, account.id);
      return manage(async (managed) => {
        if (!(await managed.rotate(account.id, id, stored))) return endpointNotFound;
        return endpointReply(await findEndpoint(managed, account.id, id), 'ok', secret);
      });
    }),

    ...deliveryHandlers,
  });
}

/** The handlers of the methods on the deliveries of an endpoint. */
const deliveryHandlers = {
  listWebhookDeliveries: ofEndpoint(async (id, { account, manage }, members) => {
    const parsed = parseDeliveryList(account.id, id, members);
    if (!parsed.ok) return parsed;
    const { filter, cursorAfter } = parsed.value;
    return manage(async (managed) => {
      const found = await findEndpoint(managed, account.id, id);
      if (!found.ok) return found;
      const limit = filter.limit + 1;
      const deliveries = await managed.pageOfDeliveries(account.id, id, { ...filter, limit });
      const page = deliveries.slice(0, filter.limit);
      const end = deliveries.length > filter.limit ? page.at(-1) : undefined;
      const body = { deliveries: page.map(deliveryResponse), next_cursor: end && cursorAfter(end) };
      return success({ body, outcome: 'ok' });
    });
  }),

  redeliverWebhook: ofEndpoint(async (id, { account, manage }, members) => {
    const eventId = readId(members, 'event_id', eventIdForm, 'event');
    if (!eventId.ok) return eventId;
    return manage(async (managed) => {
      const found = await findEnabledEndpoint(managed, account.id, id);
      if (!found.ok) return found;
      const isQueued = await managed.redeliver(account.id, id, eventId.value);
      return isQueued ? success({ body: {}, outcome: 'accepted' }) : failed(notFound('event'));
    });
  }),

  redeliverFailedWebhooks: ofEndpoint(async (id, { account, manage }, members) => {
    const since = parseFailedSince(members.failed_since);
    if (!since.ok) return since;
    return manage(async (managed) => {
      const found = await findEnabledEndpoint(managed, account.id, id);
      if (!found.ok) return found;
      const count = await managed.redeliverFailed(account.id, id, new Date(since.value));
      return success({ body: { queued: count, has_more: count === redeliveredMax }, outcome: 'accepted' });
    });
  }),
};

/** Returns the handler of a method on one endpoint. `handle` receives the endpoint's id. */
function ofEndpoint<Body extends object>(
  handle: (id: string, manager: Manager, members: Members) => Promise<Result<Reply<Body>, Failure>>,
) {
  return async (members: Members, manager: Manager): Promise<Result<Reply<Body>, Failure>> => {
    const id = readId(members, 'id', endpointIdForm, 'webhook_endpoint');
    return id.ok ? handle(id.value, manager, members) : id;
  };
}

/** Returns the failure of a request whose URL the gateway may not call; `undefined` if it may call the URL. */
function urlFailure(url: string, allowed: AllowedAddresses): Failure | undefined {
  const problem = urlProblem(new URL(url), allowed);
  return problem === undefined ? undefined : { kind: 'webhook_url_not_allowed', reason: `The URL ${problem}.` };
}

/** Lists the merchant's endpoints, oldest first. */
async function listEndpoints(managed: Managed, merchantId: AccountId): Promise<readonly FoundEndpoint[]> {
  const endpoints = await managed.list(merchantId);
  const signer = returnSigner(endpoints);
  return endpoints.map((endpoint) => ({ endpoint, signsReturns: endpoint === signer }));
}

async function findEndpoint(
  managed: Managed,
  merchantId: AccountId,
  endpointId: string,
): Promise<Result<FoundEndpoint, Failure>> {
  const endpoints = await listEndpoints(managed, merchantId);
  const found = endpoints.find(({ endpoint }) => endpoint.endpointId === endpointId);
  return found === undefined ? endpointNotFound : success(found);
}

async function findEnabledEndpoint(...endpoint: Parameters<typeof findEndpoint>): ReturnType<typeof findEndpoint> {
  const found = await findEndpoint(...endpoint);
  const isDisabled = found.ok && found.value.endpoint.disabledAt !== null;
  return isDisabled ? failed({ kind: 'webhook_endpoint_disabled' }) : found;
}

function endpointReply(found: Result<FoundEndpoint, Failure>, outcome: Success = 'ok', newSecret?: string) {
  return found.ok ? success({ body: { endpoint: endpointResponse(found.value, newSecret) }, outcome }) : found;
}

export type EndpointResponse = ReturnType<typeof endpointResponse>;
export type DeliveryResponse = ReturnType<typeof deliveryResponse>;

/** Builds the API's form of an endpoint. It contains the signing secret only if the secret is new. */
function endpointResponse({ endpoint, signsReturns }: FoundEndpoint, newSecret?: string) {
  const { endpointId, url, eventTypes, disabledAt, failingSince, createdAt } = endpoint;
  return {
    id: endpointId,
    url,
    event_types: eventTypes ?? [allEventTypes],
    status: disabledAt === null ? 'enabled' : 'disabled',
    created_at: formatTime(createdAt.getTime()),
    signs_returns: signsReturns,
    failing_since: formatOptionalTime(failingSince?.getTime()),
    disabled_at: formatOptionalTime(disabledAt?.getTime()),
    signing_secret: newSecret,
  };
}

function deliveryResponse(delivery: WebhookDelivery) {
  const { eventId, type, createdAt, attempts, lastAttemptAt, lastResult, nextAttemptAt, deliveredAt } = delivery;
  return {
    event_id: eventId,
    type,
    created_at: formatTime(createdAt.getTime()),
    status: deliveryStatusOf(delivery),
    attempts,
    last_attempt_at: formatOptionalTime(lastAttemptAt?.getTime()),
    last_result: lastResult ?? undefined,
    next_attempt_at: formatOptionalTime(nextAttemptAt?.getTime()),
    delivered_at: formatOptionalTime(deliveredAt?.getTime()),
  };
}
