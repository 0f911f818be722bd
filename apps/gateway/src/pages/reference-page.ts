import { failures } from '@gateway/domain/failure';
import { type FieldErrorCode, fieldErrorCodes } from '@gateway/domain/field-rules';
import { amountHundredthsMax, formatAmount } from '@gateway/domain/money';
import { html, raw } from 'hono/html';
import type { OpenApi, Operation } from './openapi.ts';
import type { JsonSchema } from './schemas.ts';
import { referenceStyle } from './styles.ts';

/** What each field code means: for the documentation. */
export const fieldCodesTold: Readonly<Record<FieldErrorCode, string>> = {
  missing: 'the field is required and is absent or null',
  wrong_type: 'the value has another JSON type',
  blank: 'the text has no character that is not blank',
  too_long: 'the text has too many characters',
  too_short: 'the text has too few characters',
  not_allowed: 'the value is none of those that are allowed',
  bad_format: 'the text does not have the form',
  bad_characters: 'the text holds a character that is not allowed there, or is not well-formed Unicode',
  too_precise: 'the amount has more decimals than two, or than the currency has',
  out_of_range: `the amount is not greater than 0 or is above ${formatAmount(amountHundredthsMax)}`,
};

type Html = ReturnType<typeof html>;

/** The reference for people, made from the OpenAPI document alone: one page without script or anything loaded. */
export function referencePage(document: OpenApi, baseUrl: string): Promise<string> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const { Order, OrderAnswer, Payment, Problem } = document.components.schemas;
  const body = html`<h1>${document.info.title}</h1>
<p>${document.info.description}</p>
<p>Base URL: <code>${baseUrl}</code>. Machine-readable: <a href="${baseUrl}/openapi.json">openapi.json</a>. Refusals: <a href="${baseUrl}/docs/errors">errors</a>.</p>
<nav aria-label="Operations"><ul>${operations.map(
    ({ path, method, operation }) =>
      html`<li><a href="#${operation.operationId}"><code>${method} ${path}</code></a> ${operation.summary}</li>`,
  )}</ul></nav>
${operations.map(({ path, method, operation }) => operationSection(path, method, operation))}
${schemaSection('Order', Order)}${schemaSection('OrderAnswer', OrderAnswer)}${schemaSection('Payment', Payment)}${schemaSection('Problem', Problem)}`;
  return pageOf('Order gateway: reference', body);
}

/** What the `type` of every problem document leads to. */
export function errorsReferencePage(baseUrl: string): Promise<string> {
  const body = html`<h1>Errors</h1>
<p>A refusal is a problem document (RFC 9457). Decide on its <code>code</code>. Over gRPC the code is the reason in <code>google.rpc.ErrorInfo</code>. See the <a href="${baseUrl}/docs">reference</a>.</p>
${Object.entries(failures).map(
  ([code, { title, httpStatus, grpcStatus, when }]) => html`<section id="${code}">
<h2><code>${code}</code></h2>
<p>${title}. HTTP ${httpStatus}${grpcStatus === null ? '' : `, gRPC ${grpcStatus}`}.</p>
<p>${when}</p>
</section>`,
)}
<section id="fields"><h2>Field codes</h2>
<dl>${fieldErrorCodes.map((code) => html`<dt><code>${code}</code></dt><dd>${fieldCodesTold[code]}</dd>`)}</dl>
</section>`;
  return pageOf('Order gateway: errors', body);
}

function operationSection(path: string, method: string, operation: Operation): Html {
  const example = operation.requestBody?.content['application/json']?.example;
  const headers = operation.security.length === 0 ? '' : 'Needs the headers x-client-id and x-client-secret.';
  return html`<section id="${operation.operationId}">
<h2>${operation.summary}</h2>
<p><code>${method} ${path}</code></p>
<p>${operation.description} ${headers}</p>
<h3>Parameters</h3>
<dl>${operation.parameters.map(
    ({ name, in: place, description, schema }) =>
      html`<dt><code>${name}</code> <span class="type">${place}</span></dt><dd>${description}${boundsOf(schema)}</dd>`,
  )}</dl>
${example === undefined ? '' : html`<h3>Body</h3><p>An <a href="#Order">Order</a>:</p><pre tabindex="0">${JSON.stringify(example, null, 2)}</pre>`}
<h3>Answers</h3>
<dl>${Object.entries(operation.responses).map(
    ([status, { description, content }]) =>
      html`<dt>${status} ${Object.keys(content).map((type) => html`<span class="type">${type}</span> `)}</dt><dd>${description
        .split('\n\n')
        .map((line) => html`<p>${withCode(line)}</p>`)}</dd>`,
  )}</dl>
${answerExample(operation)}
</section>`;
}

/** The answer of a success, where the document shows one. */
function answerExample({ responses }: Operation): Html | string {
  const shown = Object.values(responses).flatMap(({ content }) => content['application/json']?.example ?? []);
  if (shown.length === 0) return '';
  return html`<h3>Answer</h3><p>An <a href="#OrderAnswer">OrderAnswer</a>:</p><pre tabindex="0">${JSON.stringify(shown[0], null, 2)}</pre>`;
}

function schemaSection(name: string, { description, properties = {}, required = [] }: JsonSchema): Html {
  return html`<section id="${name}">
<h2>${name}</h2>
<p>${description}</p>
<dl>${Object.entries(properties).map(
    ([field, schema]) =>
      html`<dt><code>${field}</code> <span class="type">${[schema.type].flat().join(' or ')}${required.includes(field) ? ', required' : ''}</span></dt><dd>${schema.description}${boundsOf(schema)}</dd>`,
  )}</dl>
</section>`;
}

/** The limits of a schema in words. */
function boundsOf(schema: JsonSchema): string {
  const { minLength, maxLength, exclusiveMinimum, minimum, maximum } = schema;
  const said = [
    maxLength === undefined ? '' : `${minLength ?? 0} to ${maxLength} characters`,
    exclusiveMinimum === undefined ? '' : `greater than ${exclusiveMinimum}`,
    minimum === undefined ? '' : `at least ${minimum}`,
    maximum === undefined ? '' : `at most ${maximum}`,
    ...(schema.allOf ?? []).map((part) => part.description ?? ''),
    schema.enum === undefined ? '' : schema.enum.join(', '),
  ].filter((text) => text !== '');
  return said.length === 0 ? '.' : `: ${said.join('; ')}.`;
}

/** Text with its parts between backticks as code. */
function withCode(text: string): (Html | string)[] {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}

async function pageOf(title: string, body: Html): Promise<string> {
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${raw(referenceStyle)}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
  return page.toString();
}
