import { fitsMinorUnit } from '@order-gateway/domain/money';
import { amountOf, type CheckoutOrder } from '../gateway/gateway.ts';
import type { Attempt, Store } from '../store/store.ts';
import { offeringsOf } from './all.ts';
import { amountRefusals, type Method, type Offering, type Provider } from './provider.ts';

/** A method with which an order can be paid. */
export interface Offer {
  /** Identifies the offer in the form of the page. */
  readonly id: string;
  readonly provider: Offering;
  readonly connectionId: string | null;
  readonly method: Method;
}

interface OfferDeps {
  readonly store: Pick<Store, 'connectionsOf' | 'withReason'>;
  readonly providers: ReadonlyMap<string, Provider>;
}

/** Identifies a method of an account in the form of the page. */
export function offerId({ connectionId, provider, method }: Pick<Attempt, 'connectionId' | 'provider' | 'method'>) {
  return `${connectionId ?? provider}.${method}`;
}

/**
 * Returns the methods of the merchant that can take an order, except those whose provider refused its amount. The mode
 * of the account is that of the order: no test key pays a live order, and no live key a test order.
 */
export async function offersFor(
  { store, providers }: OfferDeps,
  orderToken: string,
  order: CheckoutOrder,
): Promise<readonly Offer[]> {
  const offerings = offeringsOf(providers);
  const [connections, refused] = await Promise.all([
    store.connectionsOf(order.merchantId),
    store.withReason(orderToken, amountRefusals),
  ]);
  const accounts = [
    ...connections.filter(({ mode }) => mode === order.mode),
    ...(order.mode === 'test'
      ? [...providers.values()]
          .filter(({ identify }) => identify === undefined)
          .map(({ name }) => ({ connectionId: null, provider: name, settings: undefined }))
      : []),
  ];
  return accounts.flatMap(({ connectionId, provider: name, settings }) => {
    const provider = offerings.get(name);
    const permitted = settings?.methods?.split(' ');
    return (provider?.methods ?? [])
      .filter((method) => (permitted?.includes(method.name) ?? true) && canTake(method, order))
      .map((method) => ({
        id: offerId({ connectionId, provider: name, method: method.name }),
        provider: provider as Offering,
        connectionId,
        method,
      }))
      .filter(({ id }) => refused.every((attempt) => offerId(attempt) !== id));
  });
}

/** Whether a method can take the exact amount of an order. */
function canTake(method: Method, order: Pick<CheckoutOrder, 'orderAmount' | 'orderCurrency'>): boolean {
  const amount = amountOf(order);
  const decimals = method.decimals(order.orderCurrency);
  if (decimals === undefined || !fitsMinorUnit(amount, decimals)) return false;
  const [min, max] = method.range(order.orderCurrency);
  return amount >= min && amount <= max;
}
