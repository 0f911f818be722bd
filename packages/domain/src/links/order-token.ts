import type { AccountId } from '../accounts/account.ts';
import { base62Alphabet, type RandomBytes, randomBase62 } from '../base62.ts';

declare const orderTokenBrand: unique symbol;

/** Identifies an order in its payment link: 32 base62 characters with 154 random bits, so that it cannot be guessed. */
export type OrderToken = string & { readonly [orderTokenBrand]: true };

/** The length of a token in characters. */
export const orderTokenLength = 32;

/** The number of characters at the end of a token that hold the merchant's id, which is below 62^6. */
const merchantLength = 6;
const randomLength = orderTokenLength - merchantLength;

/**
 * The index of the random character that shifts a digit. The indexes are spread out, so that the end of a token does
 * not resemble its beginning.
 */
const shifterIndexOf = (place: number): number => 4 * place + 3;

/**
 * Returns a new token. It contains the merchant's id, so that the database looks for the order only among those of the
 * merchant. A random character shifts each digit of the id, so that every character is equally likely at each position.
 */
export function createOrderToken(merchantId: AccountId, randomBytes: RandomBytes): OrderToken {
  const random = randomBase62(randomLength, randomBytes);
  let merchant = '';
  let remaining: number = merchantId;
  for (let place = 0; place < merchantLength; place += 1) {
    const digit = remaining % base62Alphabet.length;
    merchant += base62Alphabet[(digit + digitAt(random, shifterIndexOf(place))) % base62Alphabet.length];
    remaining = (remaining - digit) / base62Alphabet.length;
  }
  return `${random}${merchant}` as OrderToken;
}

/** Returns the id of the merchant in a token. There may be no such merchant. */
export function merchantIdOf(token: OrderToken): AccountId {
  let merchantId = 0;
  for (let place = merchantLength - 1; place >= 0; place -= 1) {
    const digit = digitAt(token, randomLength + place) - digitAt(token, shifterIndexOf(place)) + base62Alphabet.length;
    merchantId = merchantId * base62Alphabet.length + (digit % base62Alphabet.length);
  }
  return merchantId as AccountId;
}

function digitAt(token: string, index: number): number {
  return base62Alphabet.indexOf(token.charAt(index));
}

/** Matches every token. */
export const orderTokenForm = new RegExp(`^[${base62Alphabet}]{${orderTokenLength}}$`);

/** Returns the text as a token, or `undefined` if it does not have the format of a token. */
export function parseOrderToken(text: string): OrderToken | undefined {
  return orderTokenForm.test(text) ? (text as OrderToken) : undefined;
}
