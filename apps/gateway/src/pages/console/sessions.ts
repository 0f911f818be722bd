import {
  type ConsoleSession,
  type ConsoleUser,
  consoleLimits,
  consoleRoles,
  createConsoleToken,
  type EndedSessions,
  hashSecret,
  merchantNameRule,
} from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { signInLink } from '@order-gateway/domain/links';
import { type FieldError, textError } from '@order-gateway/domain/requests';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import { fieldOf, readRowId } from './forms.ts';
import { filled, timeOf } from './layout.ts';
import { failurePage, type Page, page, type Response, redirect, storedResult, type Visit } from './visit.ts';

const linkMinutes = consoleLimits.linkMs / 60_000;

/** The page that lists who is signed in, and its actions: ending sessions and creating links for colleagues. */
export const sessionPages: readonly Page[] = [
  { method: 'GET', path: '/sessions', isForAll: true, respond: (visit) => sessionsPage(visit) },
  {
    method: 'POST',
    path: '/sessions/:id/end',
    respond: (visit) => endSession(visit, { other: readRowId(visit.params.id) ?? 0 }, redirect('/sessions')),
  },
  {
    method: 'POST',
    path: '/sign-out-all',
    respond: (visit) => endSession(visit, 'all', { kind: 'redirect', path: '', endsSession: true }),
  },
  {
    method: 'POST',
    path: '/sign-out',
    isForAll: true,
    respond: (visit) => endSession(visit, 'own', { kind: 'redirect', path: '', endsSession: true }),
  },
  { method: 'POST', path: '/sessions', respond: inviteColleague },
];

async function endSession(visit: Visit, which: EndedSessions, response: Response): Promise<Response> {
  const { sessions, sessionDigest, call } = visit;
  const isValid = typeof which !== 'object' || Number.isSafeInteger(which.other);
  const ended = isValid
    ? storedResult(await sessions.end(sessionDigest, which, call.timeLeftMs()))
    : failed<Failure>({ kind: 'not_found' });
  if (ended.ok) return response;
  return failurePage(visit, ended.failure.kind === 'unauthenticated' ? { kind: 'not_found' } : ended.failure);
}

async function inviteColleague(visit: Visit): Promise<Response> {
  const { sessions, sessionDigest, call, deps, texts } = visit;
  const colleague = readColleague(visit.form);
  if (!colleague.ok) return sessionsPage(visit, colleague.failure);
  const token = createConsoleToken(deps.randomBytes);
  const created = storedResult(
    await sessions.createLink(sessionDigest, hashSecret(token), colleague.value, call.timeLeftMs()),
  );
  if (!created.ok) return failurePage(visit, created.failure);
  const { name } = colleague.value;
  const content = html`<div class="card">
<p>${filled(texts.linkForText, { name, minutes: linkMinutes })}</p>
<label><span>${filled(texts.linkFor, { name })}</span> <input readonly value="${signInLink(deps.baseUrl(), token)}"></label>
<p><a href="${visit.link('/sessions')}">${texts.sessions}</a></p>
</div>`;
  return page(texts.invite, content);
}

function readColleague(form: URLSearchParams): Result<ConsoleUser, readonly FieldError<string>[]> {
  const name = form.get('name') ?? '';
  const role = consoleRoles.find((known) => known === form.get('role')) ?? 'read';
  const error = textError(merchantNameRule, name);
  return error === undefined ? success({ name, role }) : failed([{ field: 'name', ...error }]);
}

async function sessionsPage(visit: Visit, errors: readonly FieldError<string>[] = []): Promise<Response> {
  const { texts, call, sessions, sessionDigest, form, formToken, link, mayManage } = visit;
  const listed = storedResult(await sessions.list(sessionDigest, call.timeLeftMs()));
  if (!listed.ok) return failurePage(visit, listed.failure);
  const table = html`<div class="card">
<p>${texts.sessionsText}</p>
<div class="table"><table>
<thead><tr><th>${texts.name}</th><th>${texts.role}</th><th>${texts.signedInAt}</th><th>${texts.lastSeen}</th><td></td></tr></thead>
<tbody>${listed.value.map((session) => sessionRow(visit, session))}</tbody>
</table></div>
</div>`;
  if (!mayManage) return page(texts.sessions, table);
  const content = html`${table}
<form class="card" method="post" action="${link('/sessions')}">${formToken}
<h2>${texts.invite}</h2>
<p class="soft">${filled(texts.inviteText, { minutes: linkMinutes })}</p>
<div class="fields">
${fieldOf({ name: 'name', label: texts.name, value: form.get('name'), errors })}
${fieldOf({ name: 'role', label: texts.role, value: form.get('role'), choices: rolesOf(visit) })}
</div>
<p><button class="button main">${texts.createLink}</button></p>
</form>
<form class="card" method="post" action="${link('/sign-out-all')}">${formToken}
<h2>${texts.signOutAll}</h2>
<p class="soft">${texts.signOutAllText}</p>
<p><button class="button danger">${texts.signOutAll}</button></p>
</form>`;
  return page(texts.sessions, content, errors.length === 0 ? undefined : { kind: 'invalid_request', errors });
}

const rolesOf = ({ texts }: Visit) => ({ read: texts.roleRead, manage: texts.roleManage });

function sessionRow(visit: Visit, { id, name, role, createdAtMs, lastSeenAtMs }: ConsoleSession): Html {
  const { texts, language, session, link, formToken, mayManage } = visit;
  const isOwn = id === session.id;
  const end = html`<form method="post" action="${link(`/sessions/${id}/end`)}">${formToken}<button class="button plain">${filled(texts.end, { name })}</button></form>`;
  return html`<tr><td><bdi>${name}</bdi>${isOwn ? html` (${texts.you})` : ''}</td><td>${rolesOf(visit)[role]}</td>
<td data-label="${texts.signedInAt}">${timeOf(createdAtMs, language)}</td><td data-label="${texts.lastSeen}">${timeOf(lastSeenAtMs, language)}</td><td>${mayManage && !isOwn ? end : ''}</td></tr>`;
}
