import type { OrderToken } from './order-token.ts';

declare const checkoutTemplateBrand: unique symbol;

/** Where a checkout service takes payments: an absolute http or https URL with `{order_token}` once in its path or query. */
export type CheckoutTemplate = string & { readonly [checkoutTemplateBrand]: true };

const place = '{order_token}';

/** Reads a template; `undefined` for what is none, such as one whose token would choose the host or stay in the fragment. */
export function parseCheckoutTemplate(text: string): CheckoutTemplate | undefined {
  const [before = '', after, ...more] = text.split(place);
  if (after === undefined || more.length > 0) return undefined;
  // Between host and token there must be a slash or a question mark, and no fragment may have begun.
  if (!/^https?:\/\/[^/?#@\s\\]+[/?][^#\s\\]*$/i.test(before) || /[\s\\]/.test(after)) return undefined;
  return URL.canParse(before + after) ? (text as CheckoutTemplate) : undefined;
}

/** Where one order is paid. */
export function checkoutLink(template: CheckoutTemplate, token: OrderToken): string {
  return new URL(template.replace(place, token)).href;
}
