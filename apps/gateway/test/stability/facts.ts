import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCatalogue } from '@order-gateway/contract/errors';
import { callerOf, methods } from '@order-gateway/contract/operations';
import { orderCurrencyCodes } from '@order-gateway/domain/money';
import { fieldErrorCodes } from '@order-gateway/domain/requests';
import { eventSchemas } from '../../src/pages/reference/event-schemas.ts';
import { openApi } from '../../src/pages/reference/openapi.ts';
import type { JsonSchema } from '../../src/pages/reference/schemas.ts';

// Facts on which callers may rely. Each is a line of text that is true for a release. Later versions may add facts, but
// must keep all earlier ones true.

const baseUrl = 'https://pay.example.com';
const frozenFolder = join(import.meta.dirname, 'frozen');

/**
 * Returns the facts of the last release that are no longer true. With MODE=freeze, as for a release, stores the current
 * ones first.
 */
export async function brokenFacts(name: string, current: readonly string[]): Promise<string[]> {
  const file = join(frozenFolder, `${name}.txt`);
  if (process.env.MODE === 'freeze') await writeFile(file, `${[...new Set(current)].sort().join('\n')}\n`);
  const frozen = (await readFile(file, 'utf8')).trimEnd().split('\n');
  return frozen.filter((fact) => !current.includes(fact));
}

/**
 * The operations of the JSON API with their parameters and responses, the members of all schemas, the webhooks, and the
 * currencies.
 */
export function openApiFacts(): string[] {
  const { paths, components, webhooks } = openApi(baseUrl);
  const operations = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).flatMap(([verb, operation]) => {
      const name = `${verb.toUpperCase()} ${path}`;
      const { operationId, parameters, requestBody, responses } = operation;
      return [
        `${name}: operationId ${operationId}`,
        ...parameters.flatMap((parameter) => {
          const parameterName = `${name}: ${parameter.in} ${parameter.name}`;
          return [parameterName, ...(parameter.required ? [] : [`${parameterName} is optional`])];
        }),
        ...Object.keys(requestBody?.content ?? {}).map((type) => `${name}: accepts ${type}`),
        ...Object.entries(responses).flatMap(([status, { content = {}, headers = {} }]) => [
          ...Object.entries(content).map(([type, { schema }]) => `${name}: ${status} ${type} ${nameOf(schema)}`),
          ...Object.keys(headers).map((header) => `${name}: ${status} ${header}`),
        ]),
      ];
    }),
  );
  const schemas = Object.entries(components.schemas).flatMap(([name, schema]) => schemaFacts(name, schema));
  const currencies = orderCurrencyCodes.map((code) => `currency ${code}`);
  return [...operations, ...schemas, ...Object.keys(webhooks).map((type) => `webhook ${type}`), ...currencies];
}

/** The members of each event, and of the objects in events. */
export function eventFacts(): string[] {
  return Object.entries(eventSchemas(baseUrl)).flatMap(([type, schema]) => [
    ...schemaFacts(type, schema),
    ...Object.entries(schema.$defs).flatMap(([name, definition]) => schemaFacts(name, definition)),
  ]);
}

/** The error codes with their HTTP and gRPC statuses, and the codes of invalid fields. */
export function errorFacts(): string[] {
  return [
    ...Object.entries(errorCatalogue).map(
      ([code, { httpStatus, grpcStatus }]) => `${code} ${httpStatus} ${grpcStatus}`,
    ),
    ...fieldErrorCodes.map((code) => `field ${code}`),
  ];
}

/** The kind of account that may call each method. */
export function callerFacts(): string[] {
  return Object.values(methods).map((method) => `${method.name} ${callerOf(method)}`);
}

/** The migrations, each with the time that identifies it in a database and the hash of its statements. */
export function migrationFacts(): string[] {
  const folder = join(import.meta.dirname, '../../../../packages/postgres/migrations');
  const journal: { entries: { tag: string; when: number }[] } = JSON.parse(
    readFileSync(join(folder, 'meta/_journal.json'), 'utf8'),
  );
  return journal.entries.map(({ tag, when }) => {
    const hash = createHash('sha256').update(readFileSync(join(folder, `${tag}.sql`)));
    return `${tag} ${when} ${hash.digest('hex')}`;
  });
}

/** The names of the configuration variables. */
export function variableFacts(): string[] {
  const example = readFileSync(join(import.meta.dirname, '../../../../.env.example'), 'utf8');
  return [...example.matchAll(/^# ([A-Z_]+)=/gm)].map(([, name = '']) => name);
}

/**
 * The members of an object with their types and allowed values. States which members of requests are optional, because
 * they must not become required, and which members of responses are always present, because they must not become
 * optional.
 */
function schemaFacts(name: string, schema: JsonSchema): string[] {
  const isRequest = name.endsWith('Request');
  return Object.entries(schema.properties ?? {}).flatMap(([member, property]) => {
    const path = `${name}.${member}`;
    // `openApiFacts` lists the currencies once.
    const values = property.enum?.length === orderCurrencyCodes.length ? [] : (property.enum ?? []);
    const isRequired = schema.required?.includes(member) ?? false;
    return [
      `${path}: ${nameOf(property)}`,
      ...(isRequest && !isRequired ? [`${path} may be absent`] : []),
      ...(!isRequest && isRequired ? [`${path} is always present`] : []),
      ...values.map((value) => `${path} = ${value}`),
      ...(property.type === 'array' && property.items ? schemaFacts(`${path}[]`, property.items) : []),
    ];
  });
}

function nameOf(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? '';
  const type = [schema.type].flat().join(' or ');
  return schema.items === undefined ? type : `${type} of ${nameOf(schema.items)}`;
}
