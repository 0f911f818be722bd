import type { AccountId } from '@order-gateway/domain/accounts/account';
import { fieldRules, textError } from '@order-gateway/domain/fields/field-rules';
import { allEventTypes, endpointsMax } from '@order-gateway/domain/webhooks/webhook-endpoint';
import {
  deliveryStatusOf,
  openWebhookEndpoints,
  type ReencryptedSecrets,
  type StoredEndpoint,
  secretOverlapHours,
  type WebhookEndpoints,
} from '@order-gateway/postgres/webhooks/webhook-endpoints';
import type { Command } from 'commander';
import { testMessage } from '../delivery/ping.ts';
import { createSender, type Sender } from '../delivery/send.ts';
import { type AllowedAddresses, urlProblem } from '../network/ip-address.ts';
import { findSecretsKeys } from '../secrets/secrets-keys.ts';
import { createSigningSecrets, newSigningSecret, type SigningSecrets } from '../secrets/signing-secrets.ts';
import { StartError, UsageError } from '../start/process.ts';
import { accountCommand, actorOf, jsonHelp } from './arguments.ts';
import { readable, secretNote, startList } from './output.ts';
import { unknownAccount, withDatabase } from './with-accounts.ts';

export interface WebhookTools {
  readonly endpoints: Omit<WebhookEndpoints, 'close'>;
  /** Absent: there is no SECRETS_KEY. */
  readonly secrets: SigningSecrets | undefined;
  readonly sender: Pick<Sender, 'send'>;
  readonly allowedAddresses: AllowedAddresses;
}

/** Opens what the webhook commands work with, and closes it afterwards. `actor` is for the audit log. */
export function withWebhooks(work: (tools: WebhookTools) => Promise<void>, actor?: string): Promise<void> {
  return withDatabase(async (url, config) => {
    const keys = await findSecretsKeys(config);
    const allowedAddresses = config.webhookAddresses;
    const endpoints = openWebhookEndpoints({ url, actor });
    const sender = createSender({ allowedAddresses });
    try {
      await work({ endpoints, secrets: keys && createSigningSecrets(keys), sender, allowedAddresses });
    } finally {
      sender.close();
      await endpoints.close();
    }
  });
}

const listedDeliveries = 100;

const endpointHelp = 'the endpoint, as `merchant webhook show` shows it (default: the only one)';

const overlapNote = `For ${secretOverlapHours} hours, deliveries are also signed with the previous secret.`;

/** Adds the commands of `pnpm merchant webhook`. Errors are as with the other commands of the program. */
export function addWebhookCommands(
  program: Command,
  openWebhooks: typeof withWebhooks,
  print: (line: string) => void,
): void {
  const run: typeof withWebhooks = (work) => openWebhooks(work, actorOf(program));
  const webhook = program
    .command('webhook')
    .description("Manages a merchant's webhook endpoints and shows their deliveries.");
  const add = (name: string, description: string) => accountCommand(webhook, name, description);
  const addForEndpoint = (name: string, description: string) =>
    add(name, description).option('--endpoint <ID>', endpointHelp);

  addForEndpoint(
    'set',
    'Sets the URL that receives the events, and enables the endpoint. A new endpoint gets a signing secret.',
  )
    .argument('<URL>', 'an https address of the merchant')
    .option('--new', `add an endpoint: a merchant has up to ${endpointsMax}`)
    .option('--json', jsonHelp)
    .action((clientId: string, url: string, options: { endpoint?: string; new?: true; json?: true }) =>
      run(async (tools) => {
        checkUrl(url, tools.allowedAddresses);
        const { merchantId, endpoints } = await find(tools, clientId);
        const isNew = options.new ?? (endpoints.length === 0 && options.endpoint === undefined);
        const { secret, stored } = newSigningSecret(secretsOf(tools), merchantId);
        if (!isNew) {
          const { endpointId } = choose(clientId, endpoints, options.endpoint);
          await tools.endpoints.update(merchantId, endpointId, { url, status: 'enabled' });
        } else if ((await tools.endpoints.create(merchantId, { url, signingSecret: stored })) === undefined) {
          throw new StartError(
            `${clientId} has ${endpointsMax} webhook endpoints, which is the limit. Remove one first.`,
          );
        }
        const { json } = options;
        if (json)
          return print(JSON.stringify({ client_id: clientId, url, signing_secret: isNew ? secret : undefined }));
        const note = isNew
          ? `  signing secret: ${secret}\n${secretNote}`
          : 'The signing secret stays the same. `merchant webhook rotate` replaces it.';
        print(`Webhooks of ${clientId} go to ${url}\n${note}`);
      }),
    );

  add('show', 'Shows all endpoints, but never their secrets. The first one signs returns.')
    .option('--json', jsonHelp)
    .action((clientId: string, { json }: { json?: true }) =>
      run(async (tools) => {
        const { endpoints } = await find(tools, clientId);
        if (endpoints.length === 0) throw noEndpoint(clientId);
        for (const { endpointId, url, eventTypes, createdAt, disabledAt, failingSince } of endpoints) {
          const types = eventTypes ?? [allEventTypes];
          const times = { created_at: createdAt, disabled_at: disabledAt, failing_since: failingSince };
          if (json) {
            print(JSON.stringify({ id: endpointId, url, event_types: types, ...times }));
            continue;
          }
          const state =
            disabledAt !== null
              ? `disabled ${readable(disabledAt)}. Set it again to enable it.`
              : failingSince !== null
                ? `failing since ${readable(failingSince)}`
                : 'works';
          print(`ID:       ${endpointId}\nURL:      ${url}\nEVENTS:   ${types.join(', ')}`);
          print(`CREATED:  ${readable(createdAt)}\nSTATE:    ${state}`);
        }
      }),
    );

  addForEndpoint('rotate', 'Replaces the signing secret and shows the new one.')
    .option('--json', jsonHelp)
    .action((clientId: string, { endpoint, json }: { endpoint?: string; json?: true }) =>
      run(async (tools) => {
        const { merchantId, endpointId } = await findEndpoint(tools, clientId, endpoint);
        const { secret, stored } = newSigningSecret(secretsOf(tools), merchantId);
        if (!(await tools.endpoints.rotate(merchantId, endpointId, stored))) throw noEndpoint(clientId);
        if (json) return print(JSON.stringify({ client_id: clientId, signing_secret: secret }));
        print(`New signing secret of ${clientId}\n  signing secret: ${secret}\n${secretNote}\n${overlapNote}`);
      }),
    );

  addForEndpoint('remove', 'Removes the endpoint and its secret. Pending deliveries are given up.').action(
    (clientId: string, { endpoint }: { endpoint?: string }) =>
      run(async (tools) => {
        const { merchantId, endpointId, url } = await findEndpoint(tools, clientId, endpoint);
        if (!(await tools.endpoints.remove(merchantId, endpointId))) throw noEndpoint(clientId);
        print(`Webhooks of ${clientId} no longer go to ${url}`);
      }),
  );

  webhook
    .command('reencrypt')
    .description('Re-encrypts the signing secrets of all merchants with the first key of SECRETS_KEY.')
    .action(() =>
      run(async (tools) => {
        const stored = await tools.endpoints.listSecrets();
        const again = stored.flatMap((endpoint) => reencrypted(secretsOf(tools), endpoint) ?? []);
        const count = await tools.endpoints.reencrypt(again);
        print(`Re-encrypted with the first key: ${count} of ${stored.length} endpoints.`);
        if (count < stored.length)
          throw new StartError(
            'The others were stored with a key that is not in SECRETS_KEY, or changed during this command.',
          );
      }),
    );

  addForEndpoint('test', 'Sends one signed message of type webhook.test now and shows the response.').action(
    (clientId: string, { endpoint }: { endpoint?: string }) =>
      run(async (tools) => {
        const { merchantId, url, signingSecret, previousSecret } = await findEndpoint(tools, clientId, endpoint);
        const secret = secretsOf(tools).decrypt(merchantId, signingSecret);
        if (secret === undefined) throw new StartError('The signing secret was stored with another SECRETS_KEY.');
        const previous = previousSecret === null ? undefined : secretsOf(tools).decrypt(merchantId, previousSecret);
        const { headers, body } = testMessage(previous === undefined ? [secret] : [secret, previous], Date.now());
        const { status = 0, text } = await tools.sender.send(url, headers, body);
        if (status < 200 || status >= 300) throw new StartError(`The message was not delivered to ${url}: ${text}.`);
        print(`The message was delivered to ${url}: ${text}.`);
      }),
  );

  add('deliveries', `Lists up to ${listedDeliveries} deliveries: first those not delivered, then the newest.`)
    .option('--json', jsonHelp)
    .action((clientId: string, { json }: { json?: true }) =>
      run(async (tools) => {
        const { merchantId } = await find(tools, clientId);
        const columns = { 'EVENT ID': 36, TYPE: 21, CREATED: 23, STATE: 9, ATTEMPTS: 8, 'LAST RESULT': 0 };
        const { printRow, end } = startList(columns, json, print);
        for (const delivery of await tools.endpoints.listDeliveries(merchantId, listedDeliveries)) {
          const { endpointId, eventId, type, createdAt, attempts, deliveredAt, nextAttemptAt, lastResult } = delivery;
          const status = deliveryStatusOf(delivery);
          const state = status === 'failed' ? 'given up' : status;
          const times = { created_at: createdAt, delivered_at: deliveredAt, next_attempt_at: nextAttemptAt };
          const facts = {
            endpoint: endpointId,
            event_id: eventId,
            type,
            state,
            attempts,
            last_result: lastResult,
            ...times,
          };
          printRow(facts, eventId, type, readable(createdAt), state, `${attempts}`, lastResult ?? '');
        }
        end(`${clientId} has no deliveries.`);
      }),
    );

  addForEndpoint('redeliver', 'Sends an event again, from the first attempt.')
    .argument('<EVENT_ID>', "the event's id, as `merchant webhook deliveries` shows it")
    .action((clientId: string, eventId: string, { endpoint }: { endpoint?: string }) =>
      run(async (tools) => {
        const { merchantId, endpointId, disabledAt } = await findEndpoint(tools, clientId, endpoint);
        if (disabledAt !== null) throw new StartError(`The endpoint of ${clientId} is disabled. Set it again first.`);
        if (!(await tools.endpoints.redeliver(merchantId, endpointId, eventId)))
          throw new StartError('EVENT_ID must be an event of the last 30 days.');
        print(`Event ${eventId} is delivered again.`);
      }),
    );
}

async function find({ endpoints }: WebhookTools, clientId: string) {
  const found = await endpoints.find(clientId);
  if (found === undefined) throw unknownAccount(clientId);
  return found;
}

async function findEndpoint(tools: WebhookTools, clientId: string, endpointId: string | undefined) {
  const { merchantId, endpoints } = await find(tools, clientId);
  return { ...choose(clientId, endpoints, endpointId), merchantId };
}

/** The endpoint with an id, or the only one. */
function choose(clientId: string, endpoints: readonly StoredEndpoint[], id: string | undefined): StoredEndpoint {
  const [first, second] = endpoints;
  if (first === undefined) throw noEndpoint(clientId);
  if (id === undefined && second !== undefined)
    throw new StartError(`${clientId} has ${endpoints.length} webhook endpoints. Choose one with --endpoint.`);
  const chosen = id === undefined ? first : endpoints.find(({ endpointId }) => endpointId === id);
  if (chosen === undefined) throw new StartError(`${clientId} has no webhook endpoint with this ID.`);
  return chosen;
}

/** The secrets of an endpoint in the form of the first key; `undefined` if no key decrypts them. */
function reencrypted(
  secrets: SigningSecrets,
  { merchantId: id, endpointId, signingSecret: was, previousSecret }: Omit<ReencryptedSecrets, 'was'>,
): ReencryptedSecrets | undefined {
  const merchantId = id as AccountId;
  const encryptAgain = (stored: Uint8Array) => {
    const secret = secrets.decrypt(merchantId, stored);
    return secret && secrets.encrypt(merchantId, secret);
  };
  const signingSecret = encryptAgain(was);
  const previous = previousSecret && encryptAgain(previousSecret);
  return signingSecret && { merchantId, endpointId, was, signingSecret, previousSecret: previous ?? null };
}

function secretsOf({ secrets }: WebhookTools): SigningSecrets {
  if (secrets !== undefined) return secrets;
  throw new StartError('Set SECRETS_KEY to 32 random bytes in base64 first: signing secrets are stored encrypted.');
}

function checkUrl(text: string, allowedAddresses: AllowedAddresses): void {
  const error = textError(fieldRules.return_url, text);
  if (error !== undefined) throw new UsageError(`URL ${error.message}.`);
  const problem = urlProblem(new URL(text), allowedAddresses);
  if (problem !== undefined) throw new UsageError(`URL ${problem}, unless WEBHOOK_ALLOW_PRIVATE=1.`);
}

function noEndpoint(clientId: string): StartError {
  return new StartError(`${clientId} has no webhook endpoint.`);
}
