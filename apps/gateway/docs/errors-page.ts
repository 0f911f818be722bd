import { failures } from '@gateway/domain/failure';
import { fieldErrorCodes } from '@gateway/domain/field-rules';
import { fieldCodeMeanings } from '../src/pages/reference-page.ts';
import { markdownTable } from './markdown-table.ts';

/** docs/errors.md, made from the lists that the gateway answers from. */
export function errorsPage(): string {
  const rows = Object.entries(failures).map(([code, { httpStatus, grpcStatus, when }]) => [
    ...[`\`${code}\``, String(httpStatus), grpcStatus ?? '-', when],
  ]);
  const fieldRows = fieldErrorCodes.map((code) => [`\`${code}\``, fieldCodeMeanings[code]]);
  return `<!-- Made by \`pnpm --filter gateway run docs\` from apps/gateway/docs/errors-page.ts and the lists that it reads. Change it there. -->

# Errors

Over JSON a refusal is an RFC 9457 problem document (\`application/problem+json\`): \`type\`, \`title\`, \`status\`, \`detail\`,
\`code\`, \`request_id\`. Over gRPC, gRPC-Web and Connect it is a status with \`google.rpc.ErrorInfo\` in its details: \`reason\` is
the same code, \`domain\` is \`order-gateway\`, \`metadata.request_id\` the same id. Decide by the code: titles and details are for
people and may change. No answer holds a secret, a stored value or an internal cause.

A status without \`ErrorInfo\` is the protocol's own (a message that is not protobuf, an unknown method, a malformed timeout,
metadata above 16 KiB) or was made by your client, when the connection was lost, a deadline passed or the call was cancelled:
\`UNAVAILABLE\`, \`DEADLINE_EXCEEDED\`, \`CANCELLED\`, from grpc-java also \`RESOURCE_EXHAUSTED\`. What your client made is no answer: the
order may have been created, so send the same order_id again. For \`malformed_json\`, Connect's JSON has the status \`invalid_argument\`.

${markdownTable([['code', 'HTTP', 'gRPC', 'when, and what to do'], ...rows])}

\`rate_limited\` and \`overloaded\` carry \`Retry-After\` (gRPC: \`google.rpc.RetryInfo\`).

## Fields

\`invalid_order\` reports all broken fields at once, in the order of the interface: the member \`errors\` holds
\`{ "field", "code", "message" }\` for each; over gRPC \`google.rpc.BadRequest\` holds one violation a field, with the code as its
\`reason\`.

${markdownTable([['field code', 'meaning'], ...fieldRows])}

\`order_id_conflict\` names the fields that differ from the order that is kept: the member \`fields\`; over gRPC
\`google.rpc.BadRequest\` with the reason \`differs\`. \`checksum_mismatch\` tells the text that the gateway hashed: the member
\`canonical_text\`; over gRPC it is in the message.
`;
}
