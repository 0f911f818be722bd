import { parseTimeout as parseConnectTimeout } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout } from '@connectrpc/connect/protocol-grpc';

/** 24.8 days: a timer of Node.js that is set to more fires at once. */
const timerMsMax = 2 ** 31 - 1;

const parsers = { 'connect-timeout-ms': parseConnectTimeout, 'grpc-timeout': parseGrpcTimeout };

/**
 * The header fields of a call with a time limit that no timer holds. They are not told to Connect, which would set a timer, and
 * the call be noted as over a millisecond after its start. The gateway's own limit is far shorter.
 */
export function endlessTimeouts(told: (name: string) => string | null | undefined): string[] {
  return Object.entries(parsers).flatMap(([name, parse]) => {
    const { timeoutMs } = parse(told(name) ?? null, Number.MAX_SAFE_INTEGER);
    return timeoutMs !== undefined && timeoutMs > timerMsMax ? [name] : [];
  });
}
