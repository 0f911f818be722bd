import type { JsonValue } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJson } from '@connectrpc/connect/protocol-connect';
import { type Client, createOrderPath } from './client.ts';
import { causeOf, createHttpExchange } from './http-exchange.ts';
import { rpcRefusal, rpcSuccess } from './rpc-answer.ts';

/**
 * A caller of Connect's unary protocol with JSON, written out by hand: it can send what a client library never would, such as a
 * number where text belongs, and the digits of a number as they are written.
 */
export function createConnectClient(httpUrl: string): Client {
  const exchange = createHttpExchange(httpUrl);
  return {
    door: 'connect',
    async send(call) {
      try {
        const headers = { ...call.headers, 'connect-protocol-version': '1' };
        const answer = await exchange.send(createOrderPath, { ...call, headers });
        const json: JsonValue = JSON.parse(answer.bodyText);
        const answerHeaders = new Headers(answer.headers);
        if (answer.status === 200) return rpcSuccess(json, answerHeaders);
        const unreadable = new ConnectError(`HTTP ${answer.status}: ${answer.bodyText}`, Code.Unknown, answerHeaders);
        return rpcRefusal(errorFromJson(json, answerHeaders, unreadable));
      } catch (error) {
        return { kind: 'none', cause: causeOf(error) };
      }
    },
    close: exchange.close,
  };
}
