import { type FailureCode, failureAdvice, failures } from '@gateway/domain/failure';
import { fieldErrorCodes } from '@gateway/domain/field-rules';
import { fieldCodeMeanings } from '../src/pages/reference-page.ts';

/** The text of docs/errors.md, made from the gateway's own lists. */
export function errorsPage(): string {
  const errors = Object.entries(failures).map(([code, { httpStatus, grpcStatus }]) => {
    const statuses = grpcStatus === null ? httpStatus : `${httpStatus}, ${grpcStatus}`;
    return `- \`${code}\` (${statuses}): ${failureAdvice(code as FailureCode, false)}`;
  });
  const fields = fieldErrorCodes.map((code) => `- \`${code}\`: ${fieldCodeMeanings[code]}`);
  return `<!-- Made by \`pnpm --filter gateway run docs\` from apps/gateway/docs/errors-page.ts. Do not edit it here. -->

# Errors

In the JSON API an error is an RFC 9457 problem document with \`type\`, \`title\`, \`status\`, \`detail\`, \`code\` and \`request_id\`. In
gRPC, gRPC-Web and Connect it is a status with \`google.rpc.ErrorInfo\`: \`reason\` is the code, \`domain\` is \`order-gateway\`, and
\`metadata.request_id\` the id. Decide by the code: titles and details are for people and may change.

A status without \`ErrorInfo\` comes from the protocol (an invalid message, method, timeout or metadata) or from your own client library,
which lost the connection or gave up. After this, \`unavailable\` and \`deadline_exceeded\`, the order may have been created: see
[retries](creating-orders.md#retries). For \`malformed_json\`, Connect's JSON has the status \`invalid_argument\`.

Each code has its HTTP status and, unless only the JSON API has it, its gRPC status:

${errors.join('\n')}

## Fields and parameters

The member \`errors\` of \`invalid_order\` and \`invalid_request\` has \`{ "field", "code", "message" }\` for each invalid field or
parameter; \`google.rpc.BadRequest\` has one violation for each, with the code as \`reason\`.

${fields.join('\n')}

\`order_id_conflict\` names the fields that differ in the member \`fields\`, in gRPC with the reason \`differs\`. \`checksum_mismatch\` has
the [canonical text](checksum.md).
`;
}
