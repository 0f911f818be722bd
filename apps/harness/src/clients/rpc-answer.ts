import type { JsonValue } from '@bufbuild/protobuf';
import { Code, type ConnectError } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema } from '@gateway/contract/google/rpc/error_details_pb';
import type { RpcAnswer } from './client.ts';

/** The answer to a call that went well, from the response message in Protobuf's JSON form. */
export function rpcSuccess(json: JsonValue, headers: Headers): RpcAnswer {
  const metadata = Object.fromEntries(headers);
  return {
    kind: 'rpc',
    code: 'OK',
    message: '',
    metadata,
    body: withNumericId(json),
    info: undefined,
    violations: [],
    text: JSON.stringify({ metadata, json }),
  };
}

/** The answer to a call that was refused. */
export function rpcRefusal(error: ConnectError): RpcAnswer {
  const metadata = Object.fromEntries(error.metadata);
  const [info] = error.findDetails(ErrorInfoSchema);
  const violations = error
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) => fieldViolations)
    .map(({ field, reason, description }) => ({ field, reason, description }));
  const details = error.findDetails(ErrorInfoSchema);
  return {
    kind: 'rpc',
    code: statusName(error.code),
    message: error.rawMessage,
    metadata,
    body: undefined,
    info: info && { reason: info.reason, domain: info.domain, requestId: info.metadata.request_id },
    violations,
    text: JSON.stringify({ metadata, message: error.rawMessage, details, violations }),
  };
}

/** `InvalidArgument` of Connect's enumeration as gRPC writes it: `INVALID_ARGUMENT`. */
function statusName(code: Code): string {
  return Code[code].replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
}

/** Protobuf's JSON form writes int64 as a string; anything else than digits is left, so that the comparison shows it. */
function withNumericId(json: JsonValue): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json;
  const id = json.service_order_id;
  return typeof id === 'string' && /^\d+$/.test(id) ? { ...json, service_order_id: Number(id) } : json;
}
