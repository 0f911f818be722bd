import { failures } from '@gateway/domain/failure';
import { type FieldErrorCode, fieldErrorCodes } from '@gateway/domain/field-rules';

const fieldCodesTold: Readonly<Record<FieldErrorCode, string>> = {
  missing: 'the field is required and is absent or null',
  wrong_type: 'the value has another JSON type',
  blank: 'the text has no character that is not blank',
  too_long: 'the text has too many characters',
  too_short: 'the text has too few characters',
  not_allowed: 'the value is none of those that are allowed',
  bad_format: 'the text does not have the form',
  bad_characters: 'the text holds a character that is not allowed there, or is not well-formed Unicode',
  too_precise: 'the amount has more decimals than two, or than the currency has',
  out_of_range: 'the amount is not greater than 0 or is above 9999999999999.99',
};

/** docs/errors.md, made from the lists that the gateway answers from. */
export function errorsPage(): string {
  const rows = Object.entries(failures).map(
    ([code, { httpStatus, grpcStatus, when }]) => `| \`${code}\` | ${httpStatus} | ${grpcStatus ?? '-'} | ${when} |`,
  );
  const fieldRows = fieldErrorCodes.map((code) => `| \`${code}\` | ${fieldCodesTold[code]} |`);
  return `<!-- Made by \`pnpm --filter gateway docs\` from packages/domain/src/failure.ts. Change it there. -->

# Errors

Over JSON a refusal is an RFC 9457 problem document (\`application/problem+json\`): \`type\`, \`title\`, \`status\`, \`detail\`,
\`code\`, \`request_id\`. Over gRPC, gRPC-Web and Connect it is a status with \`google.rpc.ErrorInfo\` in its details: \`reason\` is
the same code, \`domain\` is \`order-gateway\`, \`metadata.request_id\` the same id. Decide on the code: titles and details are for
people and may change. No answer holds a secret, a stored value or an internal cause.

| code | HTTP | gRPC | when, and what to do |
|---|---|---|---|
${rows.join('\n')}

\`rate_limited\` and \`overloaded\` carry \`Retry-After\` (gRPC: \`google.rpc.RetryInfo\`).

## Fields

\`invalid_order\` tells every broken field at once, in the order of the interface: the member \`errors\` holds
\`{ "field", "code", "message" }\`; over gRPC \`google.rpc.BadRequest\` holds one violation a field, its \`reason\` being the code.

| field code | meaning |
|---|---|
${fieldRows.join('\n')}

\`order_id_conflict\` names the fields that differ from the order that is kept: the member \`fields\`; over gRPC
\`google.rpc.BadRequest\` with the reason \`differs\`. \`checksum_mismatch\` tells the text that the gateway hashed: the member
\`canonical_text\`; over gRPC it is in the message.
`;
}
