import { errorCatalogue } from '@order-gateway/contract/errors';
import type { Failure } from '@order-gateway/domain/failure';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'hono/html';
import { headersOfFailure } from '../../http/problem.ts';
import { consoleHeaders, languageFor, pageWithoutHeader, textsIn } from './layout.ts';
import { failureText } from './visit.ts';

export const languageOf = ({ headers }: FastifyRequest) => languageFor(headers['accept-language']);

export async function sendHtml(reply: FastifyReply, text: Promise<string>): Promise<FastifyReply> {
  return reply.headers(htmlHeaders(reply)).send(await text);
}

/** Sends a failure as a page without a header, because the request may have no session. */
export function sendFailure(reply: FastifyReply, failure: Failure): Promise<FastifyReply> {
  const language = languageOf(reply.request);
  reply.request.call.fail(failure);
  reply.code(errorCatalogue[failure.kind].httpStatus).headers(headersOfFailure(failure));
  return sendHtml(
    reply,
    pageWithoutHeader(language, textsIn(language).failureTitle, html`<p role="alert">${failureText(failure)}</p>`),
  );
}

function htmlHeaders(reply: FastifyReply): Record<string, string> {
  const language = languageOf(reply.request);
  return { ...consoleHeaders, 'content-type': 'text/html; charset=utf-8', 'content-language': language };
}
