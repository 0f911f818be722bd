import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { eventTypes } from '@order-gateway/domain/events';
import type { Failure } from '@order-gateway/domain/failure';
import type { FieldError } from '@order-gateway/domain/requests';
import { deliveryStatuses, endpointsMax, secretOverlapHours } from '@order-gateway/domain/webhooks';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import type { DeliveryResponse, EndpointResponse } from '../../operations/webhooks.ts';
import { fieldOf } from './forms.ts';
import { filled, filledTitle, timeOf } from './layout.ts';
import { failurePage, failureText, type Page, page, type Response, redirect, type Visit } from './visit.ts';

const { method } = WebhookService;
const path = '/webhooks/:id';

/** The pages of webhook endpoints and their deliveries, and their actions. */
export const webhookPages: readonly Page[] = [
  { method: 'GET', path: '/webhooks', isForAll: true, respond: (visit) => endpointsPage(visit) },
  { method: 'POST', path: '/webhooks', respond: createEndpoint },
  { method: 'GET', path, isForAll: true, respond: (visit) => endpointPage(visit) },
  { method: 'POST', path: `${path}/ping`, respond: pingEndpoint },
  { method: 'POST', path: `${path}/status`, respond: changeStatus },
  { method: 'POST', path: `${path}/redeliver`, respond: redeliver },
  { method: 'POST', path: `${path}/rotate`, respond: rotateSecret },
  { method: 'GET', path: `${path}/delete`, respond: confirmDeletion },
  { method: 'POST', path: `${path}/delete`, respond: deleteEndpoint },
];

/** The response of ListWebhookDeliveries. */
export type DeliveryList = { readonly deliveries: readonly DeliveryResponse[]; readonly next_cursor?: string };

type Endpoint = { readonly endpoint: EndpointResponse };

async function endpointsPage(visit: Visit, failure?: Failure): Promise<Response> {
  const { texts, perform, mayManage } = visit;
  const listed = await perform<{ readonly endpoints: readonly EndpointResponse[] }>(method.listWebhookEndpoints, {});
  if (!listed.ok) return failurePage(visit, listed.failure);
  const { endpoints } = listed.value;
  const errors = failure !== undefined && 'errors' in failure ? failure.errors : [];
  const hasForm = mayManage && endpoints.length < endpointsMax;
  const content = html`${failure === undefined || (hasForm && errors.length > 0) ? '' : html`<p class="error" role="alert">${failureText(failure)}</p>`}
<div class="card">
<p>${texts.webhooksText}</p>
${endpoints.length === 0 ? html`<p>${texts.noEndpoints}</p>` : endpointsTable(visit, endpoints)}
</div>
${hasForm ? endpointForm(visit, errors) : ''}`;
  return page(texts.webhooks, content, failure);
}

function endpointsTable(visit: Visit, endpoints: readonly EndpointResponse[]): Html {
  const { texts, link } = visit;
  const rows = endpoints.map(
    (endpoint) => html`<tr><td><a href="${link(`/webhooks/${endpoint.id}`)}"><bdi>${endpoint.url}</bdi></a></td>
<td>${stateOf(visit, endpoint)}</td><td>${eventsOf(visit, endpoint)}</td></tr>`,
  );
  return html`<div class="table"><table>
<thead><tr><th>${texts.address}</th><th>${texts.status}</th><th>${texts.events}</th></tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}

function endpointForm({ texts, form, link, formToken }: Visit, errors: readonly FieldError[]): Html {
  const checkedTypes = form.getAll('event_types');
  const boxes = eventTypes.map(
    (type) =>
      html`<label class="box"><input type="checkbox" name="event_types" value="${type}"${
        checkedTypes.includes(type) ? html` checked` : ''
      }> ${type}</label>`,
  );
  return html`<form class="card" method="post" action="${link('/webhooks')}">${formToken}
<h2>${texts.addEndpoint}</h2>
${fieldOf({ name: 'url', label: texts.endpointUrl, value: form.get('url'), errors })}
<fieldset><legend>${texts.eventTypes}</legend><div class="fields">${boxes}</div></fieldset>
<p><button class="button main">${texts.addEndpoint}</button></p>
</form>`;
}

async function createEndpoint(visit: Visit): Promise<Response> {
  const { form, perform } = visit;
  const types = form.getAll('event_types');
  const members = { url: form.get('url') ?? '', event_types: types.length === 0 ? undefined : types };
  const created = await perform<Endpoint>(method.createWebhookEndpoint, members);
  return created.ok ? secretPage(visit, created.value.endpoint) : endpointsPage(visit, created.failure);
}

async function endpointPage(visit: Visit, notice: Html | '' = '', failure?: Failure): Promise<Response> {
  const { texts, language, perform, mayManage } = visit;
  const id = visit.params.id ?? '';
  const found = await perform<Endpoint>(method.getWebhookEndpoint, { id });
  if (!found.ok) return failurePage(visit, found.failure);
  const { endpoint } = found.value;
  const deliveries = await deliveriesOf(visit, endpoint);
  const content = html`${notice}
${failure === undefined ? '' : html`<p class="error" role="alert">${failureText(failure)}</p>`}
<div class="card">
<p>${stateOf(visit, endpoint)}</p>
<p class="soft">${eventsOf(visit, endpoint)}</p>
${endpoint.signs_returns ? html`<p class="soft">${texts.signsReturns}</p>` : ''}
${mayManage ? endpointActions(visit, endpoint) : ''}
</div>
${deliveries}`;
  return page(filledTitle('{url}', { url: endpoint.url }, language), content, failure);
}

function endpointActions({ texts, link, formToken }: Visit, { id, status }: EndpointResponse): Html {
  const button = (action: string, text: string, field: Html | '' = '') =>
    html`<form method="post" action="${link(`/webhooks/${id}/${action}`)}">${formToken}${field}<button class="button">${text}</button></form>`;
  const target = status === 'enabled' ? 'disabled' : 'enabled';
  const statusField = html`<input type="hidden" name="status" value="${target}">`;
  return html`<div class="actions">${button('ping', texts.ping)}
${button('status', status === 'enabled' ? texts.disable : texts.enable, statusField)}
${button('rotate', texts.rotate)}
<a class="button danger" href="${link(`/webhooks/${id}/delete`)}">${texts.delete}</a></div>`;
}

async function deliveriesOf(visit: Visit, endpoint: EndpointResponse): Promise<Html> {
  const { texts, query, link, perform } = visit;
  const [status, order_id, cursor] = ['status', 'order_id', 'cursor'].map((name) => query.get(name) || undefined);
  const listed = await perform<DeliveryList>(method.listWebhookDeliveries, {
    id: endpoint.id,
    status,
    order_id,
    cursor,
  });
  const addressOf = (filter: Readonly<Record<string, string | undefined>>) => {
    const set = Object.entries({ order_id, ...filter }).flatMap(([name, value]) => (value ? [[name, value]] : []));
    return link(`/webhooks/${endpoint.id}?${new URLSearchParams(set)}`);
  };
  const filters = [undefined, ...deliveryStatuses].map((choice) => {
    const address = addressOf({ status: choice });
    return html`<a href="${address}"${choice === status ? html` aria-current="true"` : ''}>${choice === undefined ? texts.all : texts[choice]}</a>`;
  });
  const order = order_id && html`<p>${texts.order} <bdi>${order_id}</bdi></p>`;
  const heading = html`<h2>${texts.deliveries}</h2>${order}<p class="row">${filters}</p>`;
  if (!listed.ok) return html`<div class="card">${heading}<p class="error">${failureText(listed.failure)}</p></div>`;
  const { deliveries, next_cursor } = listed.value;
  return html`<div class="card">${heading}
${deliveries.length === 0 ? html`<p>${texts.noDeliveries}</p>` : deliveriesTable(visit, endpoint, deliveries)}
${next_cursor === undefined ? '' : html`<p><a rel="next" href="${addressOf({ status, cursor: next_cursor })}">${texts.next}</a></p>`}
</div>`;
}

function deliveriesTable(
  visit: Visit,
  { id, status: endpointStatus }: EndpointResponse,
  deliveries: readonly DeliveryResponse[],
): Html {
  const { texts, language, link, formToken, mayManage } = visit;
  const redeliverForm = (eventId: string) =>
    html`<form method="post" action="${link(`/webhooks/${id}/redeliver`)}">${formToken}<input type="hidden" name="event_id" value="${eventId}"><button class="button plain">${texts.redeliver}</button></form>`;
  const rows = deliveries.map(({ event_id, type, created_at, status, attempts, last_result, next_attempt_at }) => {
    const attempt =
      next_attempt_at === undefined
        ? ''
        : html`<br>${texts.nextAttempt} ${timeOf(Date.parse(next_attempt_at), language)}`;
    return html`<tr><td class="long-id">${type}<br><span class="soft"><bdi>${event_id}</bdi></span></td>
<td>${timeOf(Date.parse(created_at), language)}</td><td><span class="status badge${status === 'delivered' ? ' paid' : ''}">${texts[status]}</span></td>
<td>${filled(texts.attempts, { count: attempts })}${last_result === undefined ? '' : html`: <bdi>${last_result}</bdi>`}${attempt}</td>
<td>${mayManage && endpointStatus === 'enabled' ? redeliverForm(event_id) : ''}</td></tr>`;
  });
  return html`<div class="table"><table>
<thead><tr><th>${texts.event}</th><th>${texts.created}</th><th>${texts.status}</th><th>${texts.result}</th><td></td></tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}

async function pingEndpoint(visit: Visit): Promise<Response> {
  const { texts, perform, record } = visit;
  const found = await perform<Endpoint>(method.getWebhookEndpoint, { id: visit.params.id });
  if (!found.ok) return failurePage(visit, found.failure);
  const { id } = found.value.endpoint;
  const recorded = await record('webhook.ping', { endpoint: id });
  if (!recorded.ok) return failurePage(visit, recorded.failure);
  const sent = await perform<{ readonly delivered: boolean; readonly result: string }>(method.pingWebhookEndpoint, {
    id,
  });
  if (!sent.ok) return endpointPage(visit, '', sent.failure);
  const { delivered, result } = sent.value;
  const text = filled(delivered ? texts.pingDelivered : texts.pingFailed, { result });
  return endpointPage(visit, html`<p class="${delivered ? 'notice' : 'error'}" role="status">${text}</p>`);
}

async function changeStatus(visit: Visit): Promise<Response> {
  const { form, params } = visit;
  return showChanged(
    visit,
    await visit.perform(method.updateWebhookEndpoint, { id: params.id, status: form.get('status') }),
  );
}

async function redeliver(visit: Visit): Promise<Response> {
  const { form, params } = visit;
  return showChanged(
    visit,
    await visit.perform(method.redeliverWebhook, { id: params.id, event_id: form.get('event_id') }),
  );
}

/** Redirects to the endpoint after a change, or shows the endpoint with the failure of the change. */
async function showChanged(visit: Visit, changed: Awaited<ReturnType<Visit['perform']>>): Promise<Response> {
  return changed.ok ? redirect(`/webhooks/${visit.params.id}`) : endpointPage(visit, '', changed.failure);
}

async function rotateSecret(visit: Visit): Promise<Response> {
  const rotated = await visit.perform<Endpoint>(method.rotateWebhookSecret, { id: visit.params.id });
  if (!rotated.ok) return endpointPage(visit, '', rotated.failure);
  const note = filled(visit.texts.rotated, { hours: secretOverlapHours });
  return secretPage(visit, rotated.value.endpoint, note);
}

/** Returns the page with a new signing secret. No other page shows the secret. */
function secretPage(
  { texts, link }: Visit,
  { id, url, signing_secret = '' }: EndpointResponse,
  note: Html | '' = '',
): Response {
  const content = html`<div class="card">
<p>${filled(texts.signingSecretText, { url })} ${note}</p>
<label>${texts.signingSecret} <input readonly value="${signing_secret}"></label>
<p><a href="${link(`/webhooks/${id}`)}">${texts.continue}</a></p>
</div>`;
  return page(texts.signingSecret, content);
}

async function confirmDeletion(visit: Visit): Promise<Response> {
  const { texts, link, formToken, perform } = visit;
  const found = await perform<Endpoint>(method.getWebhookEndpoint, { id: visit.params.id });
  if (!found.ok) return failurePage(visit, found.failure);
  const { id, url, signs_returns } = found.value.endpoint;
  const content = html`<form class="card" method="post">${formToken}
<p>${filled(texts.deleteText, { url })}</p>
${signs_returns ? html`<p>${texts.signsReturns}</p>` : ''}
<p class="actions"><button class="button danger">${texts.delete}</button><a href="${link(`/webhooks/${id}`)}">${texts.back}</a></p>
</form>`;
  return page(texts.deleteTitle, content);
}

async function deleteEndpoint(visit: Visit): Promise<Response> {
  const deleted = await visit.perform(method.deleteWebhookEndpoint, { id: visit.params.id });
  return deleted.ok ? redirect('/webhooks') : endpointPage(visit, '', deleted.failure);
}

function stateOf({ texts, language }: Visit, { status, failing_since }: EndpointResponse): Html {
  if (status === 'disabled') return html`<span class="status badge">${texts.disabled}</span>`;
  if (failing_since === undefined) return html`<span class="status badge paid">${texts.works}</span>`;
  const since = timeOf(Date.parse(failing_since), language);
  return html`<span class="status badge untrusted">${texts.failing}</span> <span class="soft">${filled(texts.failingSince, { time: since })}</span>`;
}

function eventsOf({ texts }: Visit, { event_types }: EndpointResponse): string {
  return event_types.some((type) => type === '*') ? texts.allEvents : event_types.join(', ');
}
