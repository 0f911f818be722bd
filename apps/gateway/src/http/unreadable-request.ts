import type { Socket } from 'node:net';
import type { RandomBytes } from '@gateway/domain/base62';
import type { Failure } from '@gateway/domain/failure';
import type { BaseUrl } from '@gateway/domain/payment-link';
import type { Log } from '../log.ts';
import { requestIdOf } from '../request-id.ts';
import type { AnswersUnderWay } from './answers-under-way.ts';
import { answerText, refusal } from './http-answer.ts';

/** What Node.js's own refusals mean (nodejs.org, "Errors"). Whatever else llhttp can't read is no HTTP request. */
const nodeFailures: Readonly<Record<string, Failure>> = {
  HPE_HEADER_OVERFLOW: { kind: 'body_too_large' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { kind: 'body_too_large' },
  ERR_HTTP_REQUEST_TIMEOUT: { kind: 'deadline_exceeded' },
};

const unreadable: Failure = { kind: 'malformed_json', reason: 'This is not a well-formed HTTP/1.1 request.' };

interface UnreadableDeps {
  readonly randomBytes: RandomBytes;
  readonly baseUrl: () => BaseUrl;
  readonly log: Log;
}

/**
 * Answers what the HTTP parser refuses before there is a request, in the same words as every other refusal, once the requests
 * that came before it on the connection have their answers.
 */
export function answerUnreadable(
  error: Error & { code?: string },
  socket: Socket,
  deps: UnreadableDeps,
  answers: AnswersUnderWay,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
  else answers.after(socket, () => answerLast(error, socket, deps));
}

/** Writes the refusal and ends the connection, where the answer before has not done so. */
function answerLast(error: Error & { code?: string }, socket: Socket, deps: UnreadableDeps): void {
  if (!socket.writable) return;
  const requestId = requestIdOf(undefined, deps.randomBytes);
  const failure = nodeFailures[error.code ?? ''] ?? unreadable;
  socket.end(answerText(refusal(failure, requestId, deps.baseUrl()), 0));
  deps.log.call({ request_id: requestId, door: 'json', merchant_id: undefined, code: failure.kind, duration_ms: 0 });
}
