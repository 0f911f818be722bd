import { type FailureCode, failureAdvice, failures } from '@gateway/domain/failure';
import { type FieldErrorCode, fieldErrorCodes } from '@gateway/domain/field-rules';
import { amountHundredthsMax, formatAmount } from '@gateway/domain/money';
import { html } from 'hono/html';
import { codeBlock, errorLink, type Html, htmlPage, withCode } from './html-page.ts';
import type { OpenApi, Operation } from './openapi.ts';
import { jsonFailures } from './operation-failures.ts';
import { recipes, recipeTitles } from './recipes.ts';
import type { JsonSchema } from './schemas.ts';
import { referenceStyle } from './styles.ts';

/** What each field code means, for the documentation. */
export const fieldCodeMeanings: Readonly<Record<FieldErrorCode, string>> = {
  missing: 'the field is required, but absent or null',
  wrong_type: 'the value has another JSON type',
  blank: 'the text has no character that is not blank',
  too_long: 'the text has too many characters',
  too_short: 'the text has too few characters',
  not_allowed: 'the value is not one of the allowed values',
  bad_format: 'the text does not have the required form',
  bad_characters: 'the text contains a character that is not allowed there, or is not well-formed Unicode',
  too_precise: 'the amount has more than two decimals, or more than the currency has',
  out_of_range: `the number or the time is too small or too large; an amount is above 0 and at most ${formatAmount(amountHundredthsMax)}`,
};

/** The reference for people, made from the OpenAPI document: one page without scripts or anything to load. */
export async function referencePage(document: OpenApi, baseUrl: string): Promise<string> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const schemas = Object.entries(document.components.schemas);
  const body = html`<h1>${document.info.title}</h1>
<p>${document.info.description}</p>
<p>Base URL: <code>${baseUrl}</code>. See also the <a href="${baseUrl}/docs/errors">errors</a>, the <a href="${baseUrl}/openapi.json">OpenAPI document</a>, and the gRPC contract for <a href="${baseUrl}/docs/order_service.proto">merchants</a> and for <a href="${baseUrl}/docs/checkout_service.proto">checkout systems</a>.</p>
<nav aria-label="Contents">
<h2>Operations</h2>
<ul>${operations.map(
    ({ path, method, operation }) =>
      html`<li><a href="#${operation.operationId}">${operation.summary}</a> <code>${method} ${path}</code></li>`,
  )}</ul>
<h2>Recipes</h2>
<ul>${Object.entries(recipeTitles).map(([id, title]) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>
<h2>Types</h2>
<ul class="row">${schemas.map(([name]) => html`<li><a href="#${name}">${name}</a></li>`)}</ul>
</nav>
${operations.map(({ path, method, operation }) => operationSection(path, method, operation, baseUrl))}
${await recipes(baseUrl)}
${schemas.map(([name, schema]) => schemaSection(name, schema))}`;
  return pageOf('Order gateway: reference', body);
}

const failureCodes = Object.keys(failures) as FailureCode[];

/** The page about the error codes. The `type` of every problem document links to it. */
export function errorsReferencePage(baseUrl: string): Promise<string> {
  const body = html`<h1>Errors</h1>
<p>An error is a problem document (RFC 9457). Decide by its <code>code</code>. Over gRPC the code is the reason in <code>google.rpc.ErrorInfo</code>. See the <a href="${baseUrl}/docs">reference</a>.</p>
${failureCodes.map((code) => {
  const { title, httpStatus, grpcStatus } = failures[code];
  return html`<section id="${code}">
<h2><code>${code}</code></h2>
<p>${title}. HTTP ${httpStatus}${grpcStatus === null ? '' : `, gRPC ${grpcStatus}`}.</p>
<p>${failureAdvice(code, true)}</p>
</section>`;
})}
<section id="fields"><h2>Field codes</h2>
<dl>${fieldErrorCodes.map((code) => html`<dt><code>${code}</code></dt><dd>${fieldCodeMeanings[code]}</dd>`)}</dl>
</section>`;
  return pageOf('Order gateway: errors', body);
}

/** The page at the base URL itself: what this server is, and where its documentation is. */
export function landingPage(baseUrl: string): Promise<string> {
  const body = html`<h1>Order gateway</h1>
<p>This server creates payment orders for merchants’ backends, returns a payment link for each, and reports when it is paid.</p>
<ul>
<li><a href="${baseUrl}/docs">API reference</a>: how to create, list and cancel orders, with recipes for retries, events, webhooks, the checksum and gRPC</li>
<li><a href="${baseUrl}/docs/errors">Errors</a>: every error code and what to do about it</li>
<li><a href="${baseUrl}/openapi.json">OpenAPI document</a>: the same for tools</li>
</ul>
<p>If a shop sent you here to pay, open the payment link that you got from it.</p>`;
  return pageOf('Order gateway', body);
}

function operationSection(path: string, method: string, operation: Operation, baseUrl: string): Html {
  const { operationId, description, security, parameters, requestBody, responses } = operation;
  const needs = security.length === 0 ? '' : ' Needs the headers `x-client-id` and `x-client-secret`.';
  const ordinary = Object.entries(responses).filter(([, { content }]) => !content?.['application/problem+json']);
  return html`<section id="${operationId}">
<h2>${operation.summary}</h2>
<p><code>${method} ${path}</code></p>
<p>${withCode(description + needs)}</p>
<h3>Parameters</h3>
<dl>${parameters.map(
    ({ name, in: location, description, schema }) =>
      html`<dt><code>${name}</code> <span class="type">${location}</span></dt><dd>${description}${limitsOf(schema)}</dd>`,
  )}</dl>
${requestBody === undefined ? '' : html`<h3>Body</h3>${contentOf(requestBody.content)}`}
<h3>Responses</h3>
<dl>${ordinary.map(
    ([
      status,
      response,
    ]) => html`<dt>${status} <span class="type">${Object.keys(response.content ?? {}).join(' or ')}</span></dt><dd>${withCode(response.description)}
${Object.entries(response.headers ?? {}).map(
  ([name, header]) => html`<p><code>${name}</code>: ${withCode(header.description)}.</p>`,
)}</dd>`,
  )}</dl>
${contentOf(ordinary[0]?.[1].content)}
<h3>Errors</h3>
<ul class="row">${jsonFailures[operationId]
    .toSorted((one, other) => failures[one].httpStatus - failures[other].httpStatus)
    .map((code) => html`<li>${failures[code].httpStatus} ${errorLink(code, baseUrl)}</li>`)}</ul>
</section>`;
}

/** A body with its type and example. The type of a form has no section of its own; a page is not shown. */
function contentOf(content: Operation['responses'][string]['content'] = {}): Html[] {
  return Object.entries(content).map(([mediaType, { schema, example }]) => {
    if (schema.properties !== undefined) return html`<p><code>${mediaType}</code>:</p>${propertiesOf(schema)}`;
    if (schema.$ref === undefined) return html``;
    const shown = example === undefined ? '' : codeBlock(JSON.stringify(example, null, 2));
    return html`<p><code>${mediaType}</code>: ${typeOf(schema)}</p>${shown}`;
  });
}

function schemaSection(name: string, schema: JsonSchema): Html {
  return html`<section id="${name}">
<h2>${name}</h2>
${schema.description === undefined ? '' : html`<p>${schema.description}</p>`}
${propertiesOf(schema)}
</section>`;
}

function propertiesOf({ properties = {}, required = [] }: JsonSchema): Html {
  return html`<dl>${Object.entries(properties).map(
    ([field, schema]) =>
      html`<dt><code>${field}</code> <span class="type">${typeOf(schema)}${required.includes(field) ? ', required' : ''}</span></dt><dd>${schema.description}${limitsOf(schema)}</dd>`,
  )}</dl>`;
}

/** The name of a schema's type, with a link if it has a section. */
function typeOf(schema: JsonSchema): Html {
  const name = schema.$ref?.split('/').at(-1);
  if (name !== undefined) return html`<a href="#${name}">${name}</a>`;
  if (schema.items?.$ref !== undefined) return html`list of ${typeOf(schema.items)}`;
  return html`${[schema.type].flat().join(' or ')}`;
}

/** More values than this are a list for tools, in the OpenAPI document. */
const valuesMax = 30;

/** The limits of a schema in words. */
function limitsOf(schema: JsonSchema): string {
  const { minLength, maxLength, exclusiveMinimum, minimum, maximum, enum: values = [] } = schema;
  const limits = [
    maxLength === undefined ? '' : `${minLength ?? 0} to ${maxLength} characters`,
    exclusiveMinimum === undefined ? '' : `greater than ${exclusiveMinimum}`,
    minimum === undefined ? '' : `at least ${minimum}`,
    maximum === undefined ? '' : `at most ${maximum}`,
    ...(schema.allOf ?? []).map((part) => part.description ?? ''),
    values.length > valuesMax ? `${values.length} values` : values.join(', '),
    schema.default === undefined ? '' : `${schema.default} by default`,
  ].filter((text) => text !== '');
  return limits.length === 0 ? '.' : `: ${limits.join('; ')}.`;
}

function pageOf(title: string, body: Html): Promise<string> {
  return htmlPage({ language: 'en', title, style: referenceStyle, body });
}
