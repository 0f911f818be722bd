import { type Seeded, seededAt } from './seeded.ts';

/** One order of a run: its merchant, and its fields as the API contract names them. The amount has two decimals. */
export interface SentOrder {
  readonly merchant: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** The settings that determine the orders of a run. */
export interface OrderSettings {
  readonly seed: number;
  readonly merchants: number;
  /** The share of the orders that have metadata. */
  readonly metadata_share?: number | undefined;
}

/** The random values of orders use indexes far from those that decide other properties of a call. */
const orderIndex = 0x60000000;

export function orderIdPrefix(seed: number): string {
  return `load-${seed}-`;
}

/** Returns the number of an order in the run, or `undefined` if the order belongs to another run. */
export function numberOf(seed: number, orderId: string): number | undefined {
  const prefix = orderIdPrefix(seed);
  return orderId.startsWith(prefix) ? Number(orderId.slice(prefix.length)) : undefined;
}

/** Returns the metadata of an order or of a list's filter, or `undefined` if it has none. */
export function metadataOf({ metadata_share = 0 }: Pick<OrderSettings, 'metadata_share'>, random: Seeded) {
  return random.fraction() < metadata_share ? { cart: String(random.below(1_000)) } : undefined;
}

/**
 * Returns a function that makes an order of a run from its number alone, so that the audit can make the same order.
 * Fields that do not vary are those of the fixtures' valid order.
 */
export function createOrders(
  validOrder: Readonly<Record<string, unknown>>,
  settings: OrderSettings,
): (number: number) => SentOrder {
  const { seed, merchants } = settings;
  const texts = Object.entries(validOrder).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value]] : [],
  );
  const shared: Record<string, string> = Object.fromEntries(texts);
  return (number) => {
    const random = seededAt(seed, orderIndex + number);
    const given = random.pick(['Ada', 'Chinua', 'Mei', 'José', 'Saoirse', 'Дмитрий', 'أمينة', 'Søren']);
    const family = random.pick(['Lovelace', 'Achebe', 'Nguyễn', 'García', 'O’Neill', 'Иванов', 'Müller', '李']);
    return {
      merchant: random.below(merchants),
      fields: {
        ...shared,
        order_id: `${orderIdPrefix(seed)}${number}`,
        order_amount: ((random.below(500_000) + 1) / 100).toFixed(2),
        order_currency: random.pick(['EUR', 'USD', 'GBP', 'CHF', 'SEK', 'INR']),
        order_note: `Order ${number} of a load run, ${random.pick(['gift wrapped', 'express', 'leave with a neighbour'])}`,
        service_type: random.pick(['DIGITAL', 'PHYSICAL_GOODS']),
        customer_name: `${given} ${family}`,
        customer_email: `customer.${random.below(1_000_000)}@example.com`,
        customer_address_city: random.pick(['London', 'Zürich', 'São Paulo', '東京', 'Mumbai']),
      },
      metadata: metadataOf(settings, random),
    };
  };
}
