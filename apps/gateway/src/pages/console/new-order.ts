import { randomUUID } from 'node:crypto';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import { orderCurrencyCodes } from '@order-gateway/domain/money';
import {
  formatTime,
  parseOrder,
  type RequestFieldName,
  requestFieldNames,
  serviceTypes,
} from '@order-gateway/domain/orders';
import { pageLimit } from '@order-gateway/domain/requests';
import { checksumOf } from '@order-gateway/domain/signing';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import type { OrderRecord, OrderResponse } from '../../operations/orders.ts';
import { findPaymentLink } from '../../operations/stored-orders.ts';
import { fieldOf, timeOfField } from './forms.ts';
import { orderPath } from './orders.ts';
import { explainAmount, typedAmount } from './typed-amount.ts';
import { failureText, type Page, page, type Response, redirect, type Visit } from './visit.ts';

const path = '/new-order';

/** The form that creates an order, for merchants who send payment links themselves. */
export const newOrderPages: readonly Page[] = [
  { method: 'GET', path, respond: (visit) => formPage(visit) },
  { method: 'POST', path, respond: createOrder },
];

/** The fields of CreateOrder that are not in the form. The console computes the checksum itself. */
const omittedFields = ['order_checksum', 'customer_locale', 'metadata'] as const;
type FieldName = Exclude<RequestFieldName, (typeof omittedFields)[number]>;

const fields = requestFieldNames.filter(
  (name): name is FieldName => !(omittedFields as readonly RequestFieldName[]).includes(name),
);

const firstFields: readonly FieldName[] = [
  'order_amount',
  'order_currency',
  'order_note',
  'customer_name',
  'customer_email',
];
const foldedFields = [
  'order_expires_at',
  'service_type',
  ...fields.filter((name) => name.startsWith('customer_') && !firstFields.includes(name)),
  'return_url',
  'order_id',
] as const satisfies readonly FieldName[];

/**
 * The values of fields that CreateOrder requires, for a merchant who does not know them
 * (docs/decisions/089-links-without-an-address.md).
 */
const unknownValues: Readonly<Partial<Record<FieldName, string>>> = {
  customer_phone: '0000',
  customer_address_line1: '-',
  customer_address_city: '-',
  customer_address_state: '-',
  customer_address_country: '-',
  customer_address_postal_code: '-',
};
const optionalFields: readonly FieldName[] = ['customer_address_line2', 'order_expires_at'];

const linkIdPrefix = 'LINK-';

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
    members[name] = text === '' ? unknownValues[name] : name === 'order_expires_at' ? timeOfField(text) : text;
  }
  const { order_amount } = members;
  if (typeof order_amount === 'string') members.order_amount = typedAmount(order_amount);
  return members;
}

/** Returns suggestions for a new link, most of them from the merchant's last one, if it is among the newest orders. */
async function suggestionsFor({ deps, call, perform }: Visit): Promise<Partial<Record<FieldName, string>>> {
  const suggested = { order_id: `${linkIdPrefix}${randomUUID()}`, order_currency: 'EUR' };
  const listed = await perform<{ readonly orders: readonly OrderRecord[] }>(OrderService.method.listOrders, {
    limit: `${pageLimit.max}`,
  });
  const last = listed.ok ? listed.value.orders.find(({ order_id }) => order_id.startsWith(linkIdPrefix)) : undefined;
  if (last === undefined) return suggested;
  const found = await findPaymentLink(deps.store.findByToken, call, last.order_token);
  if (!found.ok) return suggested;
  const { fields, expiresAtMs, createdAtMs } = found.value.order;
  return {
    ...suggested,
    order_currency: fields.order_currency,
    service_type: fields.service_type,
    return_url: fields.return_url,
    ...(expiresAtMs !== null && { order_expires_at: formatTime(deps.now() + expiresAtMs - createdAtMs) }),
  };
}

async function formPage(visit: Visit, failure?: Failure): Promise<Response> {
  const { texts, language, form, link, formToken } = visit;
  const example = new Intl.NumberFormat(language, { minimumFractionDigits: 2 }).format(49.9);
  const errors = explainAmount(failure, 'order_amount', form.get('order_amount'), texts.amountForm);
  const suggested = form.has('order_amount') ? {} : await suggestionsFor(visit);
  const options: Partial<Record<FieldName, object>> = {
    order_amount: { label: texts.order_amount.replace('{example}', example), inputMode: 'decimal' },
    order_currency: { choices: Object.fromEntries(orderCurrencyCodes.map((code) => [code, code])) },
    order_note: { type: 'multiline', isWide: true },
    customer_email: { inputMode: 'email' },
    service_type: { choices: Object.fromEntries(serviceTypes.map((type) => [type, texts[type]])) },
    order_expires_at: { type: 'datetime-local' },
    return_url: { isWide: true },
    order_id: { isWide: true },
  };
  const field = (name: FieldName): Html => {
    const isOptional = optionalFields.includes(name) || name in unknownValues;
    const label = isOptional ? `${texts[name]} (${texts.optional})` : texts[name];
    return fieldOf({ name, label, value: form.get(name) ?? suggested[name], errors, ...options[name] });
  };
  const isOpen =
    errors.some((error) => foldedFields.some((name) => name === error.field)) ||
    (form.get('return_url') ?? suggested.return_url) === undefined;
  const problem =
    failure === undefined
      ? ''
      : html`<p class="error" role="alert">${errors.length === 0 ? failureText(failure) : texts.fieldErrors}</p>`;
  const content = html`<p>${texts.newLinkText} <span class="soft">${texts.required}</span></p>
${problem}
<form class="card" method="post" action="${link(path)}">${formToken}
<div class="fields">${firstFields.map(field)}</div>
<details${isOpen ? html` open` : ''}><summary>${texts.moreFields}</summary>
<div class="fields">${foldedFields.map(field)}</div>
</details>
<p><button class="button main">${texts.create}</button></p>
</form>`;
  return page(texts.newLink, content, failure);
}
