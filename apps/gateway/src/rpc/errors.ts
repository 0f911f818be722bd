import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { codeFromString } from '@connectrpc/connect/protocol-connect';
import { errorCatalogue, failureDetail } from '@order-gateway/contract/errors';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
  RetryInfoSchema,
} from '@order-gateway/contract/google/rpc/error_details_pb';
import type { Failure } from '@order-gateway/domain/failure';

/** The value of `google.rpc.ErrorInfo.domain`. */
const errorDomain = 'order-gateway';

/**
 * The maximum length of a status message, in bytes of UTF-8. The trailers contain the message twice: in base64, and
 * percent-encoded with up to three bytes per byte. Clients accept 8 KB of trailers (grpc.io, "Metadata"). The longest
 * common message contains an order's canonical text, which is usually shorter than 600 bytes.
 */
const statusMessageBytesMax = 1_536;

/**
 * Returns the error for a failure over gRPC, gRPC-Web and Connect. The details of its status contain the error code,
 * the request id and the fields. They contain the code twice: in upper case, as AIP-193 requires, and in the form of
 * the JSON API.
 */
export function connectErrorOf(failure: Failure, requestId: string): ConnectError {
  const { grpcStatus } = errorCatalogue[failure.kind];
  const code = grpcStatus === null ? undefined : codeFromString(grpcStatus.toLowerCase());
  const error = new ConnectError(shortened(failureDetail(failure)), code ?? Code.InvalidArgument);
  const info = { reason: failure.kind.toUpperCase(), domain: errorDomain, metadata: { code: failure.kind } };
  error.details = [
    { desc: ErrorInfoSchema, value: info },
    { desc: RequestInfoSchema, value: { requestId } },
    ...detailsOf(failure),
  ];
  return error;
}

function detailsOf(failure: Failure): ConnectError['details'] {
  const fieldViolations = violationsOf(failure);
  if (fieldViolations.length > 0) return [{ desc: BadRequestSchema, value: { fieldViolations } }];
  if (!('retryAfterMs' in failure)) return [];
  return [{ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(failure.retryAfterMs) } }];
}

function violationsOf(failure: Failure) {
  if ('errors' in failure)
    return failure.errors.map(({ field, code, message }) => ({ field, reason: code, description: message }));
  if (!('fields' in failure)) return [];
  return failure.fields.map((field) => ({ field, reason: 'differs', description: 'differs from the stored order' }));
}

/** Returns the message or, if it is too long, as many characters as fit and a note that it was truncated. */
function shortened(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= statusMessageBytesMax) return message;
  const beginning = new TextDecoder().decode(bytes.subarray(0, statusMessageBytesMax), { stream: true });
  return `${beginning} ... (truncated from ${bytes.length} bytes; POST /order returns the complete text)`;
}
