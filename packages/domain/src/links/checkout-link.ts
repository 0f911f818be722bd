import type { OrderToken } from './order-token.ts';

declare const checkoutTemplateBrand: unique symbol;

/** The URL of a checkout service: absolute, http or https, with `{order_token}` once in its path or query. */
export type CheckoutTemplate = string & { readonly [checkoutTemplateBrand]: true };

const placeholder = '{order_token}';

/**
 * Parses a template. Returns `undefined` if it is not valid, for example if the token would be part of the host or
 * fragment.
 */
export function parseCheckoutTemplate(text: string): CheckoutTemplate | undefined {
  const [before = '', after, ...furtherParts] = text.split(placeholder);
  if (after === undefined || furtherParts.length > 0) return undefined;
  // A slash or a question mark must separate the host from the token, and the token must not be in the fragment.
  if (!/^https?:\/\/[^/?#@\s\\]+[/?][^#\s\\]*$/i.test(before) || /[\s\\]/.test(after)) return undefined;
  return URL.canParse(before + after) ? (text as CheckoutTemplate) : undefined;
}

/** Returns the address at which the customer pays one order. */
export function checkoutLink(template: CheckoutTemplate, token: OrderToken): string {
  return new URL(template.replace(placeholder, token)).href;
}
