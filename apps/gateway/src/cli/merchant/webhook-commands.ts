import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { deliveryStatuses, endpointsMax, secretOverlapHours } from '@order-gateway/domain/webhooks';
import { displayTime, startList } from '@order-gateway/runtime/output';
import { StartError } from '@order-gateway/runtime/process';
import { type Command, Option } from 'commander';
import type { DeliveryResponse, EndpointResponse } from '../../operations/webhooks.ts';
import { accountCommand, actorOf, jsonHelp } from '../arguments.ts';
import { secretNote } from '../new-secret.ts';
import type { OpenOperator, Operator } from '../operator.ts';

const { method } = WebhookService;

/** The number of deliveries to list: the maximum that the API returns on one page. */
const listedDeliveries = 100;

const endpointHelp = 'the endpoint, as `merchant webhook show` shows it (default: the only one)';

const overlapNote = `For ${secretOverlapHours} hours, deliveries are also signed with the previous secret.`;

/** The options of most commands: the id of an endpoint, and whether to print JSON. */
interface Options {
  readonly endpoint?: string;
  readonly json?: true;
}

/** The functions with which a group of commands of `merchant webhook` is added. */
interface WebhookProgram {
  readonly run: OpenOperator;
  readonly print: (line: string) => void;
  /** Adds a command of an account. */
  readonly add: (name: string, description: string) => Command;
  /** Adds a command of an endpoint of an account. */
  readonly addForEndpoint: (name: string, description: string) => Command;
}

/** Adds the commands of `merchant webhook`, which call operations of the API. */
export function addWebhookCommands(program: Command, openOperator: OpenOperator, print: (line: string) => void): void {
  const run: OpenOperator = (work) => openOperator(work, actorOf(program));
  const webhook = program
    .command('webhook')
    .description("Manages a merchant's webhook endpoints and shows their deliveries.");
  const add = (name: string, description: string) =>
    accountCommand(webhook, name, description).option('--json', jsonHelp);
  const addForEndpoint = (name: string, description: string) =>
    add(name, description).option('--endpoint <ID>', endpointHelp);
  addEndpointCommands({ run, print, add, addForEndpoint });
  webhook
    .command('reencrypt')
    .description('Re-encrypts the signing secrets of all merchants with the first key of SECRETS_KEY.')
    .action(() =>
      run(async (operator) => {
        const { count, total } = await operator.reencrypt();
        print(`Re-encrypted with the first key: ${count} of ${total} endpoints.`);
        if (count < total)
          throw new StartError(
            'The remaining ones were stored with a key that is not in SECRETS_KEY, or changed during this command.',
          );
      }),
    );
  addDeliveryCommands({ run, print, add, addForEndpoint });
}

/** Adds the commands that show and change endpoints. */
function addEndpointCommands({ run, print, add, addForEndpoint }: WebhookProgram): void {
  addForEndpoint(
    'set',
    'Sets the URL that receives the events, and enables the endpoint. A new endpoint gets a signing secret.',
  )
    .argument('<URL>', 'an https address of the merchant')
    .option('--new', `add an endpoint: a merchant has up to ${endpointsMax}`)
    .action((clientId: string, url: string, options: Options & { readonly new?: true }) =>
      run(async (operator) => {
        const endpoints = await listEndpoints(operator, clientId);
        const isNew = options.new ?? (endpoints.length === 0 && options.endpoint === undefined);
        const endpoint = isNew
          ? await operator.call<EndpointResponse>(method.createWebhookEndpoint, clientId, { url })
          : await operator.call<EndpointResponse>(method.updateWebhookEndpoint, clientId, {
              id: choose(clientId, endpoints, options.endpoint).id,
              url,
              status: 'enabled',
            });
        if (options.json) return print(JSON.stringify(endpoint));
        const note = isNew
          ? `  signing secret: ${endpoint.signing_secret}\n${secretNote}`
          : 'The signing secret stays the same. `merchant webhook rotate` replaces it.';
        print(`Webhooks of ${clientId} go to ${endpoint.url}\n${note}`);
      }),
    );

  add(
    'show',
    'Shows all endpoints without their secrets. The secret of the oldest enabled endpoint also signs return links.',
  ).action((clientId: string, { json }: Options) =>
    run(async (operator) => {
      const endpoints = await listEndpoints(operator, clientId);
      if (json) return print(JSON.stringify({ endpoints }));
      if (endpoints.length === 0) throw noEndpoint(clientId);
      for (const endpoint of endpoints) print(describeEndpoint(endpoint));
    }),
  );

  addForEndpoint('rotate', 'Replaces the signing secret and shows the new one.').action(
    (clientId: string, options: Options) =>
      run(async (operator) => {
        const { id } = await findEndpoint(operator, clientId, options);
        const endpoint = await operator.call<EndpointResponse>(method.rotateWebhookSecret, clientId, { id });
        if (options.json) return print(JSON.stringify(endpoint));
        const secretLine = `  signing secret: ${endpoint.signing_secret}`;
        print(`New signing secret of ${clientId}\n${secretLine}\n${secretNote}\n${overlapNote}`);
      }),
  );

  addForEndpoint('remove', 'Removes the endpoint and its secret. Pending deliveries are given up.').action(
    (clientId: string, options: Options) =>
      run(async (operator) => {
        const { id, url } = await findEndpoint(operator, clientId, options);
        const removed = await operator.call(method.deleteWebhookEndpoint, clientId, { id });
        print(options.json ? JSON.stringify(removed) : `Webhooks of ${clientId} no longer go to ${url}`);
      }),
  );
}

/** Adds the commands that send webhooks and list deliveries. */
function addDeliveryCommands({ run, print, addForEndpoint }: WebhookProgram): void {
  addForEndpoint('test', 'Sends one signed message of type webhook.test now and shows the response.').action(
    (clientId: string, options: Options) =>
      run(async (operator) => {
        const { id, url } = await findEndpoint(operator, clientId, options);
        const sent = await operator.call<{ delivered: boolean; result: string }>(method.pingWebhookEndpoint, clientId, {
          id,
        });
        if (options.json) return print(JSON.stringify(sent));
        if (!sent.delivered) throw new StartError(`The message was not delivered to ${url}: ${sent.result}.`);
        print(`The message was delivered to ${url}: ${sent.result}.`);
      }),
  );

  addForEndpoint('deliveries', `Lists the newest deliveries of the last 30 days, up to ${listedDeliveries}.`)
    .addOption(new Option('--status <STATUS>', 'only deliveries with this status').choices(deliveryStatuses))
    .action((clientId: string, { status, ...options }: Options & { readonly status?: string }) =>
      run(async (operator) => {
        const { id } = await findEndpoint(operator, clientId, options);
        const members = { id, status, limit: listedDeliveries };
        const listed = await operator.call<{ deliveries: readonly DeliveryResponse[] }>(
          method.listWebhookDeliveries,
          clientId,
          members,
        );
        if (options.json) return print(JSON.stringify(listed));
        const columns = { 'EVENT ID': 36, TYPE: 21, CREATED: 23, STATUS: 9, ATTEMPTS: 8, 'LAST RESULT': 0 };
        const { printRow, end } = startList(columns, undefined, print);
        for (const delivery of listed.deliveries) {
          const { event_id, type, created_at, status, attempts, last_result = '' } = delivery;
          printRow(delivery, event_id, type, displayTime(new Date(created_at)), status, `${attempts}`, last_result);
        }
        end('There are no deliveries.');
      }),
    );

  addForEndpoint('redeliver', 'Sends an event again, from the first attempt.')
    .argument('<EVENT_ID>', "the event's id, as `merchant webhook deliveries` shows it")
    .action((clientId: string, eventId: string, options: Options) =>
      run(async (operator) => {
        const { id } = await findEndpoint(operator, clientId, options);
        const queued = await operator.call(method.redeliverWebhook, clientId, { id, event_id: eventId });
        print(options.json ? JSON.stringify(queued) : `Event ${eventId} is delivered again.`);
      }),
    );
}

async function listEndpoints(operator: Operator, clientId: string): Promise<readonly EndpointResponse[]> {
  const listed = await operator.call<{ endpoints: readonly EndpointResponse[] }>(method.listWebhookEndpoints, clientId);
  return listed.endpoints;
}

async function findEndpoint(operator: Operator, clientId: string, { endpoint }: Options): Promise<EndpointResponse> {
  return choose(clientId, await listEndpoints(operator, clientId), endpoint);
}

/** Returns the endpoint with the id or, without an id, the only endpoint. */
function choose(clientId: string, endpoints: readonly EndpointResponse[], id: string | undefined): EndpointResponse {
  const [first, second] = endpoints;
  if (first === undefined) throw noEndpoint(clientId);
  if (id === undefined && second !== undefined)
    throw new StartError(`${clientId} has ${endpoints.length} webhook endpoints. Choose one with --endpoint.`);
  const chosen = id === undefined ? first : endpoints.find((endpoint) => endpoint.id === id);
  if (chosen === undefined) throw new StartError(`${clientId} has no webhook endpoint with this ID.`);
  return chosen;
}

function describeEndpoint({ id, url, event_types, created_at, disabled_at, failing_since }: EndpointResponse): string {
  let state = 'works';
  if (failing_since !== undefined) state = `failing since ${displayTime(new Date(failing_since))}`;
  if (disabled_at !== undefined) state = `disabled ${displayTime(new Date(disabled_at))}. Set it again to enable it.`;
  return [
    `ID:       ${id}`,
    `URL:      ${url}`,
    `EVENTS:   ${event_types.join(', ')}`,
    `CREATED:  ${displayTime(new Date(created_at))}`,
    `STATE:    ${state}`,
  ].join('\n');
}

function noEndpoint(clientId: string): StartError {
  return new StartError(`${clientId} has no webhook endpoint.`);
}
