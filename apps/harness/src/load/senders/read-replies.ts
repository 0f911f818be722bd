import { fromBinary, type JsonValue } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJson } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { trailerParse } from '@connectrpc/connect/protocol-grpc-web';
import { CreateOrderResponseSchema } from '@gateway/contract/gateway/v1/order_service_pb';
import { ErrorInfoSchema } from '@gateway/contract/google/rpc/error_details_pb';
import { failures } from '@gateway/domain/failure';
import type { HttpReply } from './http-pool.ts';
import { type Acknowledged, type Reply, refusedReply } from './sender.ts';

/** What a refusal of each code must come with. */
const httpStatuses = new Map(
  Object.entries(failures).map(([code, { httpStatus }]): [string, number] => [code, httpStatus]),
);

const unreadable = 'an answer that cannot be read';

/** An answer of `POST /order`. */
export function readJsonReply({ status, headers, body }: HttpReply): Reply {
  const members = membersIn(body);
  if (members === undefined) return refusedReply(`HTTP ${status} without JSON`);
  if (status === 200 || status === 201) return kept(acknowledgedIn(members), headers['idempotent-replayed'] === 'true');
  const { code } = members;
  if (typeof code !== 'string') return refusedReply(`HTTP ${status}`);
  return refusedReply((httpStatuses.get(code) ?? status) === status ? code : `HTTP ${status} with ${code}`);
}

/** An answer of Connect's unary protocol with JSON. */
export function readConnectReply({ status, headers, body }: HttpReply): Reply {
  const members = membersIn(body);
  if (members === undefined) return refusedReply(`HTTP ${status} without JSON`);
  if (status === 200) return kept(acknowledgedIn(members), headers['idempotent-replayed'] === 'true');
  const fallback = new ConnectError(`HTTP ${status}`, Code.Unknown);
  return refusalReply(errorFromJson(members, undefined, fallback));
}

/** An answer of gRPC-Web: frames of the message and of the trailers, or trailers as headers alone. */
export function readGrpcWebReply({ status, headers, body }: HttpReply): Reply {
  if (status !== 200) return refusedReply(`HTTP ${status}`);
  let message: Uint8Array | undefined;
  let trailers = new Headers();
  for (let at = 0; at + 5 <= body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    const content = body.subarray(at + 5, end);
    // The highest bit of a frame's flags marks the trailers.
    if (body.readUInt8(at) & 0x80) trailers = trailerParse(content);
    else message = content;
    at = end;
  }
  if (typeof headers['grpc-status'] === 'string') trailers = asHeaders(headers);
  const replayed = headers['idempotent-replayed'] === 'true' || trailers.get('idempotent-replayed') === 'true';
  return readGrpc(message, trailers, replayed);
}

/** What a gRPC call ended with: the message without its frame, and headers and trailers together. */
export function readGrpc(message: Uint8Array | undefined, trailers: Headers, replayed: boolean): Reply {
  const status = trailers.get('grpc-status');
  if (status === null) return refusedReply('no gRPC status');
  if (status === '0') return message === undefined ? refusedReply(unreadable) : kept(acknowledgedBy(message), replayed);
  return refusalReply(findTrailerError(trailers) ?? new ConnectError(`gRPC status ${status}`, Code.Unknown));
}

export function asHeaders(fields: Readonly<Record<string, unknown>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(fields)) {
    if (!name.startsWith(':') && value !== undefined) headers.set(name, String(value));
  }
  return headers;
}

function kept(acknowledged: Acknowledged | undefined, replayed: boolean): Reply {
  if (acknowledged === undefined) return refusedReply(unreadable);
  return { outcome: replayed ? 'replayed' : 'created', acknowledged };
}

function refusalReply(error: ConnectError): Reply {
  const [info] = error.findDetails(ErrorInfoSchema);
  return refusedReply(info?.reason ?? `RPC code ${error.code}`);
}

function membersIn(body: Buffer): { [name: string]: JsonValue } | undefined {
  try {
    const value: JsonValue = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function acknowledgedIn(members: Readonly<Record<string, JsonValue>>): Acknowledged | undefined {
  const { order_id: orderId, order_token: orderToken, service_order_id: id } = members;
  // Protobuf's JSON writes 64-bit integers as texts.
  const serviceOrderId = Number(id);
  const complete =
    typeof orderId === 'string' && typeof orderToken === 'string' && Number.isSafeInteger(serviceOrderId);
  return complete ? { orderId, orderToken, serviceOrderId } : undefined;
}

function acknowledgedBy(message: Uint8Array): Acknowledged | undefined {
  try {
    const { orderId, orderToken, serviceOrderId } = fromBinary(CreateOrderResponseSchema, message);
    return { orderId, orderToken, serviceOrderId: Number(serviceOrderId) };
  } catch {
    return undefined;
  }
}
