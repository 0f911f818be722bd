import { fromBinary, type JsonValue, toJson } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJson } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { trailerParse } from '@connectrpc/connect/protocol-grpc-web';
import { ErrorInfoSchema } from '@gateway/contract/google/rpc/error_details_pb';
import { type Operation, type OperationName, operations } from '@gateway/fixtures/operations';
import { ordersIn, type Reply } from './sender.ts';

/** A response over HTTP/1.1. */
export interface HttpReply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** Reads a response of the JSON API. */
export function readJson(operation: OperationName, { status, headers, body }: HttpReply): Reply {
  const json = jsonIn(body);
  if (status === 200 || status === 201) return success(operation, json, headers);
  const code: unknown = Object(json).code;
  return { outcome: typeof code === 'string' ? code : `HTTP ${status}` };
}

/** Reads a response of Connect's unary protocol with JSON. */
export function readConnect(operation: OperationName, { status, headers, body }: HttpReply): Reply {
  const json = jsonIn(body);
  if (status === 200) return success(operation, json, headers);
  return failure(errorFromJson(json ?? null, headers, new ConnectError(`HTTP ${status}`, Code.Unknown)));
}

/** Reads a response of gRPC-Web: envelopes with the message and the trailers, or trailers as headers only. */
export function readGrpcWeb(operation: OperationName, { status, headers, body }: HttpReply): Reply {
  if (status !== 200) return { outcome: `HTTP ${status}` };
  let message: Uint8Array | undefined;
  let trailers = headers;
  for (let at = 0; at + 5 <= body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    const content = body.subarray(at + 5, end);
    // The highest bit of the flags marks the trailers.
    if (body.readUInt8(at) & 0x80) trailers = trailerParse(content);
    else message = content;
    at = end;
  }
  return readGrpc(operation, message, headers, trailers);
}

/** Reads the end of a gRPC call: the message without its envelope, and the metadata. */
export function readGrpc(
  operation: OperationName,
  message: Uint8Array | undefined,
  headers: Headers,
  trailers: Headers,
): Reply {
  const status = trailers.get('grpc-status');
  if (status !== '0') {
    const error = findTrailerError(trailers);
    return error === undefined ? { outcome: `gRPC status ${status}` } : failure(error);
  }
  return success(operation, message && messageJson(operation, message), headers);
}

function success(operation: OperationName, json: unknown, headers: Headers): Reply {
  const orders = ordersIn(operation, json);
  if (orders === undefined) return { outcome: 'an unreadable response' };
  const first = operation === 'CreateOrder' ? 'created' : 'ok';
  return { outcome: headers.get('idempotent-replayed') === 'true' ? 'replayed' : first, orders };
}

function failure(error: ConnectError): Reply {
  const [info] = error.findDetails(ErrorInfoSchema);
  return { outcome: info?.reason ?? `RPC code ${error.code}` };
}

function jsonIn(body: Buffer): JsonValue | undefined {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

function messageJson(operation: OperationName, message: Uint8Array): JsonValue | undefined {
  const { rpc }: Operation = operations[operation];
  try {
    return rpc && toJson(rpc.output, fromBinary(rpc.output, message));
  } catch {
    return undefined;
  }
}
