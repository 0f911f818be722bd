import { type FailureCode, failureAdvice, failures } from '@gateway/domain/failure';
import { type FieldErrorCode, fieldErrorCodes } from '@gateway/domain/field-rules';
import { amountHundredthsMax, formatAmount } from '@gateway/domain/money';
import { html } from 'hono/html';
import { codeBlock, type Html, htmlPage } from './html-page.ts';
import type { OpenApi, Operation } from './openapi.ts';
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
  out_of_range: `the amount is not greater than 0 or is above ${formatAmount(amountHundredthsMax)}`,
};

/** The reference for people, made from the OpenAPI document: one page without scripts or anything to load. */
export async function referencePage(document: OpenApi, baseUrl: string): Promise<string> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const body = html`<h1>${document.info.title}</h1>
<p>${document.info.description}</p>
<p>Base URL: <code>${baseUrl}</code>. See also the <a href="${baseUrl}/docs/errors">errors</a>, the <a href="${baseUrl}/openapi.json">OpenAPI document</a> and the <a href="${baseUrl}/docs/order_service.proto">gRPC contract</a>.</p>
<nav aria-label="Contents"><ul>${operations.map(
    ({ path, method, operation }) =>
      html`<li><a href="#${operation.operationId}"><code>${method} ${path}</code></a> ${operation.summary}</li>`,
  )}${Object.entries(recipeTitles).map(([id, title]) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>
${operations.map(({ path, method, operation }) => operationSection(path, method, operation))}
${await recipes(baseUrl)}
${Object.entries(document.components.schemas).map(([name, schema]) => schemaSection(name, schema))}`;
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

function operationSection(path: string, method: string, operation: Operation): Html {
  const request = operation.requestBody?.content['application/json']?.example;
  const [response] = Object.values(operation.responses).flatMap(
    ({ content }) => content['application/json']?.example ?? [],
  );
  const needs = operation.security.length === 0 ? '' : ' Needs the headers `x-client-id` and `x-client-secret`.';
  return html`<section id="${operation.operationId}">
<h2>${operation.summary}</h2>
<p><code>${method} ${path}</code></p>
<p>${withCode(operation.description + needs)}</p>
<h3>Parameters</h3>
<dl>${operation.parameters.map(
    ({ name, in: location, description, schema }) =>
      html`<dt><code>${name}</code> <span class="type">${location}</span></dt><dd>${description}${limitsOf(schema)}</dd>`,
  )}</dl>
${request === undefined ? '' : html`<h3>Body</h3><p>An <a href="#Order">Order</a>:</p>${codeBlock(json(request))}`}
<h3>Responses</h3>
<dl>${Object.entries(operation.responses).map(
    ([status, { description, content }]) =>
      html`<dt>${status} ${Object.keys(content).map((type) => html`<span class="type">${type}</span> `)}</dt><dd>${description
        .split('\n\n')
        .map((line) => html`<p>${withCode(line)}</p>`)}</dd>`,
  )}</dl>
${response === undefined ? '' : html`<h3>Example</h3><p>An <a href="#OrderResponse">OrderResponse</a>:</p>${codeBlock(json(response))}`}
</section>`;
}

function schemaSection(name: string, { description, properties = {}, required = [] }: JsonSchema): Html {
  return html`<section id="${name}">
<h2>${name}</h2>
<p>${description}</p>
<dl>${Object.entries(properties).map(
    ([field, schema]) =>
      html`<dt><code>${field}</code> <span class="type">${[schema.type].flat().join(' or ')}${required.includes(field) ? ', required' : ''}</span></dt><dd>${schema.description}${limitsOf(schema)}</dd>`,
  )}</dl>
</section>`;
}

/** The limits of a schema in words. */
function limitsOf(schema: JsonSchema): string {
  const { minLength, maxLength, exclusiveMinimum, minimum, maximum } = schema;
  const limits = [
    maxLength === undefined ? '' : `${minLength ?? 0} to ${maxLength} characters`,
    exclusiveMinimum === undefined ? '' : `greater than ${exclusiveMinimum}`,
    minimum === undefined ? '' : `at least ${minimum}`,
    maximum === undefined ? '' : `at most ${maximum}`,
    ...(schema.allOf ?? []).map((part) => part.description ?? ''),
    schema.enum === undefined ? '' : schema.enum.join(', '),
  ].filter((text) => text !== '');
  return limits.length === 0 ? '.' : `: ${limits.join('; ')}.`;
}

/** Text whose parts between backticks are code. */
function withCode(text: string): (Html | string)[] {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}

function json(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

function pageOf(title: string, body: Html): Promise<string> {
  return htmlPage({ language: 'en', title, style: referenceStyle, body });
}
