import { readFile } from 'node:fs/promises';
import { type BrandTexts, brandRules, logoLimits, noBrand } from '@order-gateway/domain/accounts/brand';
import { textError } from '@order-gateway/domain/fields/field-rules';
import { type Command, Option } from 'commander';
import { callTimeoutMs } from '../limits.ts';
import { createCheckLogo } from '../operations/logos/check-logo.ts';
import { messageOf, StartError, UsageError } from '../start/process.ts';
import { accountCommand, jsonHelp } from './arguments.ts';
import { type OpenAccounts, unknownAccount } from './with-accounts.ts';

const options = {
  color: 'the colour of buttons, such as #0b5fff',
  support_email: 'where customers can ask questions',
  support_url: 'where customers find help',
  terms_url: 'the terms of the merchant',
  privacy_url: 'the privacy policy of the merchant',
} as const;

type BrandOptions = { readonly logo?: string; readonly json?: true } & Readonly<Record<string, string | undefined>>;

/** Adds `merchant brand`, which shows and changes the look of a merchant's payment pages. */
export function addBrandCommand(program: Command, openAccounts: OpenAccounts, print: (line: string) => void): void {
  const command = accountCommand(
    program,
    'brand',
    'Changes the look of the payment pages, and shows it. An empty text is removed.',
  ).option('--logo <FILE>', `a PNG, JPEG or WebP image, up to ${logoLimits.bytes} bytes, or none`);
  for (const [name, help] of Object.entries(options)) {
    command.addOption(new Option(`--${name.replace('_', '-')} <TEXT>`, help));
  }
  command.option('--json', jsonHelp).action(async (clientId: string, { logo: file, json, ...others }: BrandOptions) => {
    const texts = textsOf(others);
    const logo = file === 'none' ? null : file && (await readLogo(clientId, file));
    await openAccounts(async (accounts) => {
      const change = { texts, logo: logo === '' ? undefined : logo };
      const isChange = change.logo !== undefined || Object.keys(texts).length > 0;
      if (isChange && !(await accounts.updateBrand(clientId, change))) throw unknownAccount(clientId);
      const brand = await accounts.findBrand(clientId);
      if (brand === undefined) throw unknownAccount(clientId);
      if (json) return print(JSON.stringify({ client_id: clientId, ...brand }));
      for (const [name, value] of Object.entries({ ...noBrand, ...brand })) {
        const shown =
          typeof value === 'object' ? value && `${value.type}, ${value.width} x ${value.height} pixels` : value;
        print(`${name.replace('_', ' ').toUpperCase().padEnd(15)}${shown ?? 'none'}`);
      }
    });
  });
}

/** The texts of the options, by Commander's names. */
function textsOf(given: Readonly<Record<string, string | undefined>>): BrandTexts {
  const texts: Record<string, string> = {};
  for (const [name, rule] of Object.entries(brandRules)) {
    const text = given[name.replace(/_(\w)/, (_, letter: string) => letter.toUpperCase())];
    if (text === undefined) continue;
    const error = textError(rule, text);
    if (error !== undefined) throw new UsageError(`--${name.replace('_', '-')} ${error.message}.`);
    texts[name] = text;
  }
  return texts;
}

async function readLogo(clientId: string, file: string) {
  const image = await readFile(file).catch((error: unknown) => {
    throw new StartError(`--logo could not be read: ${messageOf(error)}`);
  });
  const checked = await createCheckLogo()(clientId, image, () => callTimeoutMs);
  if (checked.ok) return checked.value;
  const [error] = 'errors' in checked.failure ? checked.failure.errors : [];
  throw new UsageError(`--logo ${error?.message ?? 'could not be checked'}.`);
}
