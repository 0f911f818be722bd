import { StartError } from '@order-gateway/runtime/process';
import type { Offering } from '../provider.ts';
import { isTransferName, transferRange } from './epc-qr-code.ts';
import { parseIban } from './iban.ts';

/**
 * SEPA transfers to a merchant's own account. The checkout cannot read their status: their payments arrive with a
 * statement, so there is no attempt. A test order is not offered a real account.
 */
export const transfer: Offering = {
  name: 'transfer',
  methods: [
    { name: 'transfer', decimals: (currency) => (currency === 'EUR' ? 2 : undefined), range: () => transferRange },
  ],
  secretNames: ['IBAN', 'Account holder'],
  async identify(secrets) {
    const { iban, name } = transferAccountOf(secrets);
    if (iban === undefined) throw new StartError('The IBAN is mistyped, or its country is not part of SEPA.');
    if (!isTransferName(name))
      throw new StartError('The name of the account holder must have 1 to 70 characters, and no spaces around it.');
    return { account: iban, mode: 'live' };
  },
};

/** Returns the account of a merchant, as it was connected. */
export function transferAccountOf(secrets: Readonly<Record<string, string>>) {
  return { iban: parseIban(secrets.IBAN ?? ''), name: secrets['Account holder'] ?? '' };
}
