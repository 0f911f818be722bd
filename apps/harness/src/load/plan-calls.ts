import { formatAmount, parseAmount } from '@gateway/domain/money';
import type { ServiceType } from '@gateway/domain/order-fields';
import { seededAt } from '@gateway/fixtures/seeded';
import type { LoadSettings } from './settings.ts';

/** What decides a run's calls. */
export type PlanSettings = Pick<LoadSettings, 'seed' | 'merchants' | 'replayShare' | 'invalidShare'>;

/** What differs between the orders of a run. */
export interface OrderData {
  readonly merchant: number;
  readonly orderId: string;
  /** With two decimals, as the interface sends it. */
  readonly amount: string;
  readonly currency: string;
  readonly note: string;
  readonly serviceType: ServiceType;
  readonly name: string;
  readonly email: string;
  readonly city: string;
}

/** Draws for different questions about one call come from places far apart. */
const kindPlace = 0x20000000;
const sourcePlace = 0x40000000;
const orderPlace = 0x60000000;

/** A repeated order is one of about so many calls ago: a caller who got no answer soon asks again. */
const replayReach = 500;

/** What every order id of a run begins with. */
export function orderIdPrefix(seed: number): string {
  return `load-${seed}-`;
}

/** What kind of call a number is. */
export function kindAt(
  { seed, replayShare, invalidShare }: PlanSettings,
  number: number,
): 'new' | 'replay' | 'invalid' {
  const drawn = seededAt(seed, kindPlace + number).fraction();
  return drawn < invalidShare ? 'invalid' : drawn < invalidShare + replayShare ? 'replay' : 'new';
}

/**
 * The number of the call whose order this one carries: its own for a new order, an earlier one's for a repeated order (its own
 * where there is no earlier one), `undefined` for a call that must be refused.
 */
export function sourceOf(settings: PlanSettings, number: number): number | undefined {
  const kind = kindAt(settings, number);
  if (kind === 'invalid') return undefined;
  if (kind === 'new' || number === 0) return number;
  let earlier = number - 1 - seededAt(settings.seed, sourcePlace + number).below(Math.min(number, replayReach));
  while (earlier >= 0 && kindAt(settings, earlier) !== 'new') earlier -= 1;
  return earlier >= 0 ? earlier : number;
}

/** The order that a new call carries. */
export function orderAt({ seed, merchants }: PlanSettings, number: number): OrderData {
  const random = seededAt(seed, orderPlace + number);
  const given = random.pick(['Ada', 'Chinua', 'Mei', 'José', 'Saoirse', 'Дмитрий', 'أمينة', 'Søren']);
  const family = random.pick(['Lovelace', 'Achebe', 'Nguyễn', 'García', 'O’Neill', 'Иванов', 'Müller', '李']);
  return {
    merchant: random.below(merchants),
    orderId: `${orderIdPrefix(seed)}${number}`,
    amount: amountOf(random.below(500_000) + 1),
    currency: random.pick(['EUR', 'USD', 'GBP', 'CHF', 'SEK', 'INR']),
    note: `Order ${number} of a load run, ${random.pick(['gift wrapped', 'express', 'leave with a neighbour'])}`,
    serviceType: random.pick(['DIGITAL', 'PHYSICAL_GOODS']),
    name: `${given} ${family}`,
    email: `customer.${random.below(1_000_000)}@example.com`,
    city: random.pick(['London', 'Zürich', 'São Paulo', '東京', 'Mumbai']),
  };
}

function amountOf(hundredths: number): string {
  const amount = parseAmount(`${hundredths}e-2`);
  if (!amount.ok) throw new RangeError(`${hundredths} hundredths are no amount`);
  return formatAmount(amount.value);
}
