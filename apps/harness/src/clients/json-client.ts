import type { Client } from './client.ts';
import { causeOf, createHttpExchange } from './http-exchange.ts';

/** A merchant: `POST {base_url}/order` with JSON. */
export function createJsonClient(httpUrl: string): Client {
  const exchange = createHttpExchange(httpUrl);
  return {
    door: 'json',
    async send(call) {
      try {
        const { status, headers, bodyText } = await exchange.send(call.path ?? '/order', call);
        const text = `${JSON.stringify(headers)}\n${bodyText}`;
        return { kind: 'http', status, headers, body: jsonOf(bodyText), text };
      } catch (error) {
        return { kind: 'none', cause: causeOf(error) };
      }
    },
    close: exchange.close,
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
