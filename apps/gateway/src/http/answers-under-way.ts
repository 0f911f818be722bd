import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipelinedRequestsMax } from '../limits.ts';

/** The answers that a listener's connections wait for. */
export interface AnswersUnderWay {
  /** Acts once no answer is left to go out on the connection: once, however often it is asked to wait for the same answer. */
  after(socket: Socket, act: () => void): void;
  /** From now on the latest answer of every connection says that it is the last, where it has not begun. */
  endConnections(): void;
}

/** The answer to the latest request of a connection until it has gone out, and the one before that. */
interface Connection {
  answer: ServerResponse | undefined;
  before: ServerResponse | undefined;
  /** Requests whose answers have not gone out. */
  underWay: number;
}

/** Watches a listener from now on. A connection's answers go out in the order of its requests, so the latest one tells. */
export function watchAnswers(server: Server): AnswersUnderWay {
  const connections = new Map<Socket, Connection>();
  const waitedFor = new WeakSet<ServerResponse>();
  let ending = false;
  const open = (socket: Socket): Connection => {
    const connection: Connection = { answer: undefined, before: undefined, underWay: 0 };
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
    return connection;
  };
  /** An idle connection keeps no answer in memory. */
  const letGo = function (this: ServerResponse) {
    const connection = connections.get(this.req.socket);
    if (connection === undefined) return;
    connection.underWay -= 1;
    if (connection.answer !== this) return;
    connection.answer = undefined;
    connection.before = undefined;
  };
  server.prependListener('request', ({ socket }, answer) => {
    if (ending) answer.setHeader('connection', 'close');
    const connection = connections.get(socket) ?? open(socket);
    connection.before = connection.answer;
    connection.answer = answer;
    answer.once('finish', letGo);
    connection.underWay += 1;
    if (connection.underWay > pipelinedRequestsMax) socket.destroy();
  });
  return {
    after(socket, act) {
      const answer = lastToCome(connections.get(socket));
      if (answer === undefined || answer.writableFinished) act();
      else if (!waitedFor.has(answer)) {
        waitedFor.add(answer);
        answer.once('finish', act);
      }
    },
    endConnections() {
      ending = true;
      for (const { answer } of connections.values()) {
        if (answer?.headersSent === false) answer.setHeader('connection', 'close');
      }
    },
  };
}

/** A request that is not complete gets no answer any more, unless that has begun. */
function lastToCome(connection: Connection | undefined): ServerResponse | undefined {
  const answer = connection?.answer;
  return answer === undefined || answer.req.complete || answer.headersSent ? answer : connection?.before;
}
