import type { IncomingHttpHeaders } from 'node:http';
import { type DescMethod, fromBinary, type Message } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { parseTimeout as parseConnectTimeout } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout } from '@connectrpc/connect/protocol-grpc';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import { callerOf, messageBytesMaxOf } from '@order-gateway/contract/operations';
import type { Account } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { announcedLength, envelopePrefixBytes } from '../calls/body/call-body.ts';
import { readJsonBody } from '../calls/body/json-body.ts';
import type { Members, Operation } from '../calls/operation.ts';
import { messageBytesMax } from '../limits.ts';
import { memberReader, messageBuilder } from './messages.ts';

/** An operation as a method of a service, with the parts that are built once from its descriptor. */
export interface RpcMethod {
  readonly operation: Operation;
  readonly accountKind: Account['kind'];
  /** `undefined`: the usual limit. */
  readonly messageBytesMax: number | undefined;
  readonly readMessage: (message: Message) => Members;
  readonly buildMessage: (body: object) => Message;
}

export function rpcMethods(operations: readonly Operation[]): ReadonlyMap<DescMethod, RpcMethod> {
  return new Map(
    operations.map((operation) => {
      const { method } = operation;
      const converters = { readMessage: memberReader(method.input), buildMessage: messageBuilder(method.output) };
      return [
        method,
        { operation, accountKind: callerOf(method), messageBytesMax: messageBytesMaxOf(method), ...converters },
      ];
    }),
  );
}

/** How the body of a unary call is encoded. */
export interface BodyFormat {
  readonly headers: IncomingHttpHeaders;
  readonly hasEnvelope: boolean;
  readonly isJson: boolean;
}

const compressions = new Map(
  [compressionGzip, compressionBrotli].map((compression) => [compression.name, compression]),
);

/**
 * Reads the body of a unary call. Returns `undefined` if the body is not one message in a supported encoding. Connect
 * then rejects it as its protocol requires.
 */
export async function readMembers(
  { operation, readMessage, messageBytesMax }: RpcMethod,
  body: Buffer,
  format: BodyFormat,
): Promise<Result<Members, Failure> | undefined> {
  const message = await messageIn(body, format, messageBytesMax);
  if (message === undefined || !message.ok) return message;
  if (format.isJson) return readJsonBody(message.value);
  try {
    return success(readMessage(fromBinary(operation.method.input, message.value)));
  } catch {
    return failed({ kind: 'malformed_json', reason: `The message is not a valid ${operation.method.input.name}.` });
  }
}

async function messageIn(
  body: Buffer,
  { headers, hasEnvelope }: BodyFormat,
  bytesMax = messageBytesMax,
): Promise<Result<Uint8Array, Failure> | undefined> {
  const encoding = headers[hasEnvelope ? 'grpc-encoding' : 'content-encoding']?.toString() || 'identity';
  const compression = compressions.get(encoding);
  if (compression === undefined && encoding !== 'identity') return undefined;
  const [flags = 0] = hasEnvelope ? body : [compression === undefined ? 0 : 1];
  if (hasEnvelope && body.length !== envelopePrefixBytes + announcedLength(body)) return undefined;
  const message = hasEnvelope ? body.subarray(envelopePrefixBytes) : body;
  if (flags === 0) return success(message);
  if (flags !== 1 || compression === undefined) return undefined;
  try {
    return success(await compression.decompress(message as Uint8Array<ArrayBuffer>, bytesMax));
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.ResourceExhausted)
      return failed({ kind: 'body_too_large' });
    return failed({ kind: 'malformed_json', reason: `The message is not valid ${encoding}.` });
  }
}

const parsers = Object.entries({ 'grpc-timeout': parseGrpcTimeout, 'connect-timeout-ms': parseConnectTimeout });

/**
 * Removes the client's time limit from the headers and returns it in milliseconds. Connect must not see it, because
 * Connect's own timer fires immediately if the limit is above 2^31-1 ms. A malformed limit stays in the headers, so
 * that Connect rejects it.
 */
export function takeTimeout(headers: IncomingHttpHeaders): number | undefined {
  let taken: number | undefined;
  for (const [name, parse] of parsers) {
    if (!(name in headers)) continue;
    const { timeoutMs } = parse(headers[name]?.toString() ?? null, Number.MAX_SAFE_INTEGER);
    if (timeoutMs === undefined) continue;
    delete headers[name];
    taken ??= timeoutMs;
  }
  return taken;
}
