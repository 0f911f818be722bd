import type { IncomingHttpHeaders } from 'node:http';
import { parseTimeout as parseConnectTimeout } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout } from '@connectrpc/connect/protocol-grpc';

/** 24.8 days: a timer of Node.js that is set to more fires at once. */
const timerMsMax = 2 ** 31 - 1;

const parsers = { 'connect-timeout-ms': parseConnectTimeout, 'grpc-timeout': parseGrpcTimeout };

/**
 * Takes a time limit that no timer holds out of a call's headers: Connect would set one, and the call be noted as over a
 * millisecond after its start. The gateway's own limit is far shorter.
 */
export function dropEndlessTimeout(headers: IncomingHttpHeaders): void {
  for (const [name, parse] of Object.entries(parsers)) {
    const sent = headers[name]?.toString();
    if (sent === undefined) continue;
    const { timeoutMs } = parse(sent, Number.MAX_SAFE_INTEGER);
    if (timeoutMs !== undefined && timeoutMs > timerMsMax) delete headers[name];
  }
}
