import { CredentialsService } from '@order-gateway/contract/gateway/v1/credentials_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import type { secretResponse } from '../../operations/credentials.ts';
import { filled, timeOf } from './layout.ts';
import { failurePage, failureText, type Page, page, type Response, redirect, type Visit } from './visit.ts';

const { method } = CredentialsService;
type Secret = ReturnType<typeof secretResponse>;

/** The client secrets, by number. Their values are not stored. */
export const secretPages: readonly Page[] = [
  { method: 'GET', path: '/secrets', respond: (visit) => secretsPage(visit) },
  { method: 'POST', path: '/secrets', respond: createSecret },
  { method: 'GET', path: '/secrets/:id/revoke', respond: confirmRevocation },
  { method: 'POST', path: '/secrets/:id/revoke', respond: revokeSecret },
];

async function secretsPage(visit: Visit, failure?: Failure): Promise<Response> {
  const { texts, clientId, link, formToken, perform } = visit;
  const listed = await perform<{ readonly secrets: readonly Secret[] }>(method.listClientSecrets, {});
  if (!listed.ok) return failurePage(visit, listed.failure);
  const content = html`${failure === undefined ? '' : html`<p class="error" role="alert">${failureText(failure)}</p>`}
<div class="card">
<p>${texts.secretsText}</p>
<label>${texts.clientId} <input readonly value="${clientId}"></label>
<div class="table"><table>
<thead><tr><th>${texts.number}</th><th>${texts.created}</th><th>${texts.status}</th><td></td></tr></thead>
<tbody>${listed.value.secrets.map((secret) => secretRow(visit, secret))}</tbody>
</table></div>
</div>
<form class="card" method="post" action="${link('/secrets')}">${formToken}
<h2>${texts.addSecret}</h2>
<p class="soft">${texts.addSecretText}</p>
<p><button class="button main">${texts.addSecret}</button></p>
</form>`;
  return page(texts.secrets, content, failure);
}

function secretRow({ texts, language, link, deps }: Visit, { id, created_at, ends_at }: Secret): Html {
  const endsAtMs = ends_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(ends_at);
  const hasEnded = endsAtMs <= deps.now();
  const until = ends_at === undefined ? '' : html` ${timeOf(endsAtMs, language)}`;
  const state = hasEnded ? texts.ended : ends_at === undefined ? texts.works : texts.worksUntil;
  return html`<tr><td>${id}</td><td>${timeOf(Date.parse(created_at), language)}</td>
<td><span class="status badge${hasEnded ? '' : ' paid'}">${state}</span>${until}</td>
<td>${hasEnded ? '' : html`<a href="${link(`/secrets/${id}/revoke`)}">${filled(texts.revokeNumber, { number: id })}</a>`}</td></tr>`;
}

/** Creates a secret and shows it. No other page shows it. */
async function createSecret(visit: Visit): Promise<Response> {
  const { texts, link, perform } = visit;
  const created = await perform<{ readonly secret: Secret }>(method.createClientSecret, {});
  if (!created.ok) return secretsPage(visit, created.failure);
  const { id, client_secret = '' } = created.value.secret;
  const content = html`<div class="card">
<p>${filled(texts.newSecretText, { number: id })}</p>
<label>${texts.clientSecret} <input readonly value="${client_secret}"></label>
<p><a href="${link('/secrets')}">${texts.continue}</a></p>
</div>`;
  return page(texts.addSecret, content);
}

async function confirmRevocation({ texts, params, link, formToken }: Visit): Promise<Response> {
  const number = params.id ?? '';
  const content = html`<form class="card" method="post">${formToken}
<p>${texts.revokeText}</p>
<p class="actions"><button class="button danger">${filled(texts.revokeNumber, { number })}</button><a href="${link('/secrets')}">${texts.back}</a></p>
</form>`;
  return page(texts.revoke, content);
}

async function revokeSecret(visit: Visit): Promise<Response> {
  const revoked = await visit.perform(method.revokeClientSecret, { id: visit.params.id });
  return revoked.ok ? redirect('/secrets') : secretsPage(visit, revoked.failure);
}
