import type { Order } from './order.ts';

/**
 * Where the customer returns to: the merchant's return_url with order_id, service_order_id and order_status set in its query.
 * Everything else of the merchant's URL is kept as it was sent, its own query and fragment included; parameters of these
 * three names are replaced. The token is never in it: it would be a key to the page in the merchant's logs.
 */
export function wayBack({ fields, serviceOrderId, orderStatus }: Order): string {
  const [, address = '', query = '', fragment = ''] = urlParts.exec(fields.return_url) ?? [];
  const set = {
    order_id: fields.order_id,
    service_order_id: String(serviceOrderId),
    order_status: orderStatus,
  };
  const sent = query.length > 1 ? query.slice(1).split('&') : [];
  const kept = sent.filter((parameter) => !Object.hasOwn(set, nameOf(parameter)));
  const added = Object.entries(set).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return new URL(`${address}?${[...kept, ...added].join('&')}${fragment}`).href;
}

/** The host of a URL as a browser shows it: with its port, and in Punycode where it is not ASCII. */
export function hostOf(url: string): string {
  return new URL(url).host;
}

const urlParts = /^([^?#]*)(\?[^#]*)?(#.*)?$/s;

/** A parameter's name as the merchant's server will read it, however it is percent-encoded. */
function nameOf(parameter: string): string {
  const [name = ''] = new URLSearchParams(`?${parameter}`).keys();
  return name;
}
