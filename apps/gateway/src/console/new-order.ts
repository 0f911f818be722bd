import { randomUUID } from 'node:crypto';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { NumberText, orderCurrencyCodes } from '@order-gateway/domain/money';
import { parseOrder, type RequestFieldName, requestFieldNames, serviceTypes } from '@order-gateway/domain/orders';
import type { FieldError } from '@order-gateway/domain/requests';
import { checksumOf } from '@order-gateway/domain/signing';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import type { OrderResponse } from '../operations/orders.ts';
import { fieldOf } from './forms.ts';
import { orderPath } from './orders.ts';
import { failureText, type Page, page, type Response, redirect, type Visit } from './visit.ts';

const path = '/new-order';

/** The form that creates an order, for merchants who send payment links themselves. */
export const newOrderPages: readonly Page[] = [
  { method: 'GET', path, respond: async (visit) => formPage(visit) },
  { method: 'POST', path, respond: createOrder },
];

/** The fields of CreateOrder that are not in the form. The console computes the checksum itself. */
const omittedFields = ['order_checksum', 'customer_locale', 'metadata'] as const;
type FieldName = Exclude<RequestFieldName, (typeof omittedFields)[number]>;

const fields = requestFieldNames.filter(
  (name): name is FieldName => !(omittedFields as readonly RequestFieldName[]).includes(name),
);
const customerFields = fields.filter((name) => name.startsWith('customer_'));
const optionalFields: readonly FieldName[] = ['customer_address_line2', 'order_expires_at'];

/**
 * Creates the order of a form, with a checksum whose key is the secret of `signedIn`. An invalid order has no checksum
 * and no entry in the audit log; CreateOrder rejects it with its errors.
 */
async function createOrder(visit: Visit): Promise<Response> {
  const { form, signedIn, record, perform } = visit;
  const members = membersOf(form);
  const parsed = parseOrder(members);
  if (parsed.ok) {
    const { fields } = parsed.value;
    const recorded = await record('order.create', { order_id: fields.order_id });
    if (!recorded.ok) return formPage(visit, recorded.failure);
    members.order_checksum = checksumOf(fields, signedIn.clientSecret);
  }
  const created = await perform<OrderResponse>(OrderService.method.createOrder, members);
  return created.ok ? redirect(orderPath(created.value)) : formPage(visit, created.failure);
}

function membersOf(form: URLSearchParams): Record<string, unknown> {
  const members: Record<string, unknown> = { order_checksum: '-' };
  for (const name of fields) {
    // Browsers end lines with CR LF (HTML, 4.10.22.4).
    const text = (form.get(name) ?? '').replaceAll('\r\n', '\n');
    members[name] = text === '' ? undefined : name === 'order_amount' ? new NumberText(text.trim()) : text;
  }
  return members;
}

function formPage(visit: Visit, failure?: Parameters<typeof page>[2]): Response {
  const { texts, form, link, formToken } = visit;
  const errors: readonly FieldError<string>[] = failure !== undefined && 'errors' in failure ? failure.errors : [];
  const suggested: Partial<Record<FieldName, string>> = { order_id: `LINK-${randomUUID()}`, order_currency: 'EUR' };
  const field = (name: FieldName, options: object = {}): Html => {
    const label = optionalFields.includes(name) ? `${texts[name]} (${texts.optional})` : texts[name];
    return fieldOf({ name, label, value: form.get(name) ?? suggested[name], errors, ...options });
  };
  const problem =
    failure === undefined
      ? ''
      : html`<p class="error" role="alert">${errors.length === 0 ? failureText(failure) : texts.fieldErrors}</p>`;
  const currencies = Object.fromEntries(orderCurrencyCodes.map((code) => [code, code]));
  const types = Object.fromEntries(serviceTypes.map((type) => [type, texts[type]]));
  const content = html`<p>${texts.newLinkText} <span class="soft">${texts.required}</span></p>
${problem}
<form class="card" method="post" action="${link(path)}">${formToken}
<div class="fields">
${field('order_amount')}
${field('order_currency', { choices: currencies })}
${field('service_type', { choices: types })}
${field('order_note', { type: 'multiline', isWide: true })}
${field('order_id', { isWide: true })}
</div>
<h2>${texts.customer}</h2>
<div class="fields">${customerFields.map((name) => field(name))}</div>
<div class="fields">
${field('return_url', { isWide: true })}
${field('order_expires_at', { isWide: true })}
</div>
<p><button class="button main">${texts.create}</button></p>
</form>`;
  return page(texts.newLink, content, failure);
}
