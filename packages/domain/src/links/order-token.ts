import { base62Alphabet, type RandomBytes, randomBase62 } from '../base62.ts';

declare const orderTokenBrand: unique symbol;

/** Identifies an order in its payment link: 32 base62 characters, 190 bits, so that it cannot be guessed. */
export type OrderToken = string & { readonly [orderTokenBrand]: true };

/** The length of a token in characters. */
export const orderTokenLength = 32;

/** Returns a new random token. */
export function createOrderToken(randomBytes: RandomBytes): OrderToken {
  return randomBase62(orderTokenLength, randomBytes) as OrderToken;
}

/** Matches every token. */
export const orderTokenForm = new RegExp(`^[${base62Alphabet}]{${orderTokenLength}}$`);

/** Returns the text as a token, or `undefined` if it does not have the format of one. */
export function parseOrderToken(text: string): OrderToken | undefined {
  return orderTokenForm.test(text) ? (text as OrderToken) : undefined;
}
