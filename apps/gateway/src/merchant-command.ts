import { parseArgs } from 'node:util';
import { merchantNameLengthMax } from '@gateway/domain/merchant';
import { type ChecksumMode, checksumModes } from '@gateway/domain/order-checksum';

/** What an operator asks for. No command takes a secret: arguments are seen by every user of the machine. */
export type MerchantCommand =
  | { readonly kind: 'create'; readonly name: string; readonly json: boolean }
  | { readonly kind: 'list'; readonly json: boolean }
  | { readonly kind: 'checksum'; readonly mode: ChecksumMode; readonly clientId: string }
  | { readonly kind: 'secret add'; readonly clientId: string; readonly endsAt: Date | null; readonly json: boolean }
  | { readonly kind: 'secret list'; readonly clientId: string; readonly json: boolean }
  | {
      readonly kind: 'secret revoke';
      readonly clientId: string;
      readonly secretId: number;
      readonly endsAt: Date | null;
    };

export const merchantUsage = `Usage: pnpm merchant COMMAND
  create --name NAME [--json]                   a merchant with its first client id and secret
  list [--json]                                 all merchants
  checksum versioned|required CLIENT_ID         how the merchant's order checksums are treated
  secret add CLIENT_ID [--ends TIME] [--json]   one more secret, which works at once
  secret list CLIENT_ID [--json]                the secrets by their number, never the secrets themselves
  secret revoke CLIENT_ID NUMBER [--ends TIME]  lets a secret end within a second, or at TIME
TIME is ISO 8601 with an offset, such as 2027-01-31T12:00:00Z.`;

/** Reads the arguments of `pnpm merchant`; `undefined` where they are not a command. */
export function readMerchantCommand(args: readonly string[]): MerchantCommand | undefined {
  const read = readOptions(args);
  if (read === undefined) return undefined;
  const { words, name, json, endsAt } = read;
  const [noun = '', verb = '', third = '', fourth = ''] = words;
  const kind = noun === 'secret' ? `secret ${verb}` : noun;
  const lengths: Record<string, number> = {
    create: 1,
    list: 1,
    checksum: 3,
    'secret add': 3,
    'secret list': 3,
    'secret revoke': 4,
  };
  if (words.length !== lengths[kind]) return undefined;
  switch (kind) {
    case 'create':
      return isName(name) ? { kind, name, json } : undefined;
    case 'list':
      return { kind, json };
    case 'checksum': {
      const mode = checksumModes.find((known) => known === verb);
      return mode === undefined ? undefined : { kind, mode, clientId: third };
    }
    case 'secret add':
      return { kind, clientId: third, endsAt, json };
    case 'secret list':
      return { kind, clientId: third, json };
    case 'secret revoke':
      return /^[1-9]\d{0,14}$/.test(fourth) ? { kind, clientId: third, secretId: Number(fourth), endsAt } : undefined;
    default:
      return undefined;
  }
}

function readOptions(args: readonly string[]) {
  const options = { name: { type: 'string' }, ends: { type: 'string' }, json: { type: 'boolean' } } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options });
    const endsAt = values.ends === undefined ? null : new Date(values.ends);
    if (endsAt !== null && (Number.isNaN(endsAt.getTime()) || !/T.+(Z|[+-]\d\d:\d\d)$/.test(values.ends ?? '')))
      return undefined;
    return { words: positionals, name: values.name ?? '', json: values.json ?? false, endsAt };
  } catch {
    return undefined;
  }
}

function isName(name: string): boolean {
  return /\S/.test(name) && !/\p{Cc}/u.test(name) && name.length <= merchantNameLengthMax;
}
