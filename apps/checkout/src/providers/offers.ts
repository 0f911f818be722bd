import { fitsMinorUnit } from '@order-gateway/domain/money';
import { amountOf, type CheckoutOrder } from '../gateway/gateway.ts';
import type { Store } from '../store/store.ts';
import { offeringsOf } from './all.ts';
import type { Method, Offering, Provider } from './provider.ts';

/** A method with which an order can be paid. */
export interface Offer {
  /** Identifies the offer in the form of the page. */
  readonly id: string;
  readonly provider: Offering;
  readonly connectionId: string | null;
  readonly method: Method;
}

interface OfferDeps {
  readonly store: Pick<Store, 'connectionsOf'>;
  readonly providers: ReadonlyMap<string, Provider>;
}

/**
 * Returns the methods of the merchant that can take an order. The mode of the account is that of the order: no test key
 * pays a live order, and no live key a test order.
 */
export async function offersFor({ store, providers }: OfferDeps, order: CheckoutOrder): Promise<readonly Offer[]> {
  const offerings = offeringsOf(providers);
  const connections = await store.connectionsOf(order.merchantId);
  const accounts = [
    ...connections.filter(({ mode }) => mode === order.mode),
    ...(order.mode === 'test'
      ? [...providers.values()]
          .filter(({ hasAccounts }) => !hasAccounts)
          .map(({ name }) => ({ connectionId: null, provider: name, settings: undefined }))
      : []),
  ];
  return accounts.flatMap(({ connectionId, provider: name, settings }) => {
    const provider = offerings.get(name);
    const permitted = settings?.methods?.split(' ');
    return (provider?.methods ?? [])
      .filter((method) => (permitted?.includes(method.name) ?? true) && canTake(method, order))
      .map((method) => ({
        id: `${connectionId ?? name}.${method.name}`,
        provider: provider as Offering,
        connectionId,
        method,
      }));
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
