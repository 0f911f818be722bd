import type { IncomingHttpHeaders } from 'node:http';
import { parseTimeout as parseConnectTimeout } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout } from '@connectrpc/connect/protocol-grpc';

const parsers = { 'grpc-timeout': parseGrpcTimeout, 'connect-timeout-ms': parseConnectTimeout };

/**
 * Takes the client's time limit, in milliseconds, out of the headers: the call keeps it, and Connect, which would set a timer of
 * its own that fires at once above 2^31-1 ms, does not see it. A malformed one is left for Connect to reject.
 */
export function takeTimeout(headers: IncomingHttpHeaders): number | undefined {
  for (const [name, parse] of Object.entries(parsers)) {
    const { timeoutMs } = parse(headers[name]?.toString() ?? null, Number.MAX_SAFE_INTEGER);
    if (timeoutMs === undefined) continue;
    delete headers[name];
    return timeoutMs;
  }
  return undefined;
}
