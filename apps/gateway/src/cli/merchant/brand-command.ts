import { readFile } from 'node:fs/promises';
import { BrandService } from '@order-gateway/contract/gateway/v1/brand_service_pb';
import { logoLimits } from '@order-gateway/domain/accounts';
import { messageOf, StartError } from '@order-gateway/runtime/process';
import { type Command, Option } from 'commander';
import type { BrandResponse } from '../../operations/brands.ts';
import { accountCommand, actorOf, jsonHelp } from '../arguments.ts';
import type { OpenOperator } from '../operator.ts';

const textOptions = {
  color: 'the colour of buttons, such as #0b5fff',
  support_email: 'where customers can ask questions',
  support_url: 'where customers find help',
  terms_url: 'the terms of the merchant',
  privacy_url: 'the privacy policy of the merchant',
  payment_instructions: 'how to pay without a checkout, such as a bank account',
} as const;

type BrandOptions = { readonly logo?: string; readonly json?: true } & Readonly<Record<string, string | undefined>>;

/** Adds `merchant brand`, which shows and changes the look of a merchant's payment pages. */
export function addBrandCommand(program: Command, openOperator: OpenOperator, print: (line: string) => void): void {
  const command = accountCommand(
    program,
    'brand',
    'Changes the look of the payment pages and shows it. An empty TEXT removes the setting.',
  ).option('--logo <FILE>', `a PNG, JPEG or WebP image, up to ${logoLimits.bytes} bytes, or none`);
  for (const [name, help] of Object.entries(textOptions)) {
    command.addOption(new Option(`--${name.replace('_', '-')} <TEXT>`, help));
  }
  command.option('--json', jsonHelp).action(async (clientId: string, { logo, json, ...texts }: BrandOptions) => {
    const members: Record<string, unknown> = {};
    for (const name of Object.keys(textOptions)) {
      // Commander returns the names of options in camel case.
      members[name] = texts[name.replace(/_(\w)/, (_, letter: string) => letter.toUpperCase())];
    }
    if (logo !== undefined) members.logo = logo === 'none' ? '' : await readLogo(logo);
    const isChange = Object.values(members).some((value) => value !== undefined);
    await openOperator(async (operator) => {
      const brand = isChange
        ? await operator.call<BrandResponse>(BrandService.method.updateBrand, clientId, members)
        : await operator.call<BrandResponse>(BrandService.method.getBrand, clientId);
      if (json) return print(JSON.stringify(brand));
      for (const [name, value] of Object.entries(brand)) {
        print(`${name.replace('_', ' ').toUpperCase().padEnd(22)}${value ?? 'none'}`);
      }
    }, actorOf(program));
  });
}

function readLogo(file: string): Promise<Uint8Array> {
  return readFile(file).catch((error: unknown) => {
    throw new StartError(`--logo could not be read: ${messageOf(error)}`);
  });
}
