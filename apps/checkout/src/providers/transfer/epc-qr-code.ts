import { type AmountHundredths, formatAmount } from '@order-gateway/domain/money';

/** A transfer to a merchant's account. */
export interface TransferDetails {
  /** Exactly the name of the account's holder, which the payer's bank compares. At most 70 characters. */
  readonly name: string;
  readonly iban: string;
  readonly amount: AmountHundredths;
  /** The creditor reference, without spaces. */
  readonly reference: string;
}

/** The amounts of a SEPA credit transfer, in hundredths of a euro. */
export const transferRange = [1n, 99_999_999_999n] as const;

/** The longest name in a SEPA credit transfer. */
const nameLengthMax = 70;

/** The largest content of the code. */
const bytesMax = 331;

/**
 * Returns the content of the QR code with which banks' apps fill in a transfer (EPC069-12, version 002): UTF-8, without
 * a BIC and a purpose. The reference is structured, so the text is absent: they exclude each other. Returns `undefined`
 * if the transfer does not fit a code.
 */
export function epcQrContent({ name, iban, amount, reference }: TransferDetails): string | undefined {
  const content = ['BCD', '002', '1', 'SCT', '', name, iban, `EUR${formatAmount(amount)}`, '', reference].join('\n');
  const [min, max] = transferRange;
  const fits = amount >= min && amount <= max && isTransferName(name) && Buffer.byteLength(content) <= bytesMax;
  return fits ? content : undefined;
}

/** Whether a transfer can be made to this name: one line, without spaces around it. */
export function isTransferName(name: string): boolean {
  const isLine = name === name.trim() && !/\p{C}/u.test(name);
  return isLine && name.length > 0 && Array.from(name).length <= nameLengthMax;
}
