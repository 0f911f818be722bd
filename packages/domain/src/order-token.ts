import { base62Alphabet, type RandomBytes, randomBase62 } from './base62.ts';

declare const orderTokenBrand: unique symbol;

/** What stands for an order in its payment link: 32 base62 characters, 190 bits, so that none can be guessed. */
export type OrderToken = string & { readonly [orderTokenBrand]: true };

/** In characters. */
export const orderTokenLength = 32;

/** A new token, made of random bytes. */
export function createOrderToken(randomBytes: RandomBytes): OrderToken {
  return randomBase62(orderTokenLength, randomBytes) as OrderToken;
}

/** The form of every token. */
export const orderTokenForm = new RegExp(`^[${base62Alphabet}]{${orderTokenLength}}$`);

/** The token that a payment link holds; `undefined` for a text that no token looks like. */
export function parseOrderToken(text: string): OrderToken | undefined {
  return orderTokenForm.test(text) ? (text as OrderToken) : undefined;
}
