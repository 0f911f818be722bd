import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The answers that a listener's connections wait for. */
export interface AnswersUnderWay {
  /** Acts once no answer is left to go out on the connection: once, however often it is asked to wait for the same answer. */
  after(socket: Socket, act: () => void): void;
  /** From now on the latest answer of every connection says that it is the last, where it has not begun. */
  endConnections(): void;
}

/** The answer to the latest request of a connection, and the one before where that had not gone out yet. */
interface Latest {
  readonly answer: ServerResponse;
  readonly before: ServerResponse | undefined;
}

/** Watches a listener from now on. A connection's answers go out in the order of its requests, so the latest one tells. */
export function watchAnswers(server: Server): AnswersUnderWay {
  const latest = new Map<Socket, Latest>();
  const waitedFor = new WeakSet<ServerResponse>();
  let ending = false;
  server.prependListener('request', ({ socket }, answer) => {
    if (ending) answer.setHeader('connection', 'close');
    const before = latest.get(socket)?.answer;
    if (before === undefined) socket.once('close', () => latest.delete(socket));
    latest.set(socket, { answer, before: before?.writableFinished === false ? before : undefined });
  });
  return {
    after(socket, act) {
      const answer = lastToCome(latest.get(socket));
      if (answer === undefined || answer.writableFinished) act();
      else if (!waitedFor.has(answer)) {
        waitedFor.add(answer);
        answer.once('finish', act);
      }
    },
    endConnections() {
      ending = true;
      for (const { answer } of latest.values()) if (!answer.headersSent) answer.setHeader('connection', 'close');
    },
  };
}

/** A request that is not complete gets no answer any more, unless that has begun. */
function lastToCome(latest: Latest | undefined): ServerResponse | undefined {
  if (latest === undefined) return undefined;
  const { answer, before } = latest;
  return answer.req.complete || answer.headersSent ? answer : before;
}
