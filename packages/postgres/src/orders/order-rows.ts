import type { AccountId } from '@order-gateway/domain/accounts';
import type { OrderToken } from '@order-gateway/domain/links';
import { type AmountHundredths, formatAmount, parseAmount } from '@order-gateway/domain/money';
import {
  type Metadata,
  noAttempts,
  noRefusedPayments,
  noReversals,
  type Order,
  type OrderFields,
  type OrderStatus,
  type PaymentAttempt,
  type RefusedPayment,
  type Reversals,
  transitions,
} from '@order-gateway/domain/orders';
import { getTableColumns, type Placeholder, type SQL, sql } from 'drizzle-orm';
import { arrayLiteral } from '../connections/client.ts';
import {
  type AttemptJson,
  isLeaseLive,
  orders,
  type RefusedPaymentJson,
  type ReversalsJson,
  statusUnlessExpired,
} from '../schema.ts';

/** A row of the orders table. */
export type OrderRow = typeof orders.$inferSelect;

const tableColumns = getTableColumns(orders);

/** All columns, with the stored status: for the orders of events. */
export const storedColumns = { ...tableColumns, isLeaseLive };

/** The columns of a read that shows an order's status. `expired-orders.ts` handles its outcome. */
export const orderColumns = { ...storedColumns, orderStatus: statusUnlessExpired };

/** A row of {@link orderColumns}. The status of an expired order that is still stored as unpaid is `null`. */
export type ReadRow = Omit<OrderRow, 'orderStatus'> & {
  readonly orderStatus: OrderStatus | null;
  /** Absent where it does not matter whether a lease has ended. */
  readonly isLeaseLive?: boolean | null;
};

/**
 * The columns that are null in a new order, in the order of the table. Only `metadata`, which can be null too, and
 * `reversals` follow them.
 */
const laterColumns = [
  ...(['paidAt', 'paymentId', 'cancelledAt', 'erasedDigest', 'checkoutId'] as const),
  ...(['leaseCheckoutId', 'leaseAttemptId', 'leaseEndsAt', 'endedAttempts', 'refusedPayments'] as const),
];
type LaterColumn = (typeof laterColumns)[number] | 'metadata' | 'reversals';

/** A row to insert. The expiry is ISO 8601 text, because Drizzle can't encode null as the time of a placeholder. */
export type NewOrderRow = Omit<OrderRow, LaterColumn | 'expiresAt'> & { readonly expiresAt: string | null };

const columns = Object.entries(tableColumns).filter(
  ([key]) => key !== 'metadata' && key !== 'reversals' && !laterColumns.some((later) => later === key),
) as [keyof NewOrderRow, (typeof orders)[keyof NewOrderRow]][];

/** A placeholder for each inserted column, filled from a row. */
export const rowPlaceholders = {
  ...(Object.fromEntries(columns.map(([key]) => [key, sql.placeholder(key)])) as Record<
    keyof NewOrderRow,
    Placeholder
  >),
  expiresAt: sql`${sql.placeholder('expiresAt')}`,
};

/** Returns a row to insert. `value` maps the name of a column to its value. */
export function newRow(value: (column: string) => SQL): Record<keyof NewOrderRow | 'metadata', SQL> {
  const namedColumns = [...columns, ['metadata', orders.metadata] as const];
  return Object.fromEntries(namedColumns.map(([key, { name }]) => [key, value(name)])) as ReturnType<typeof newRow>;
}

/**
 * The key that identifies an existing order. A conflict on any other key, such as the service order id, fails the
 * statement.
 */
export const conflictTarget = { target: [orders.merchantId, orders.order_id] };

const unset = sql.join(
  laterColumns.map((key) => sql`null::${sql.raw(orders[key].getSQLType())}`),
  sql`, `,
);

const arrays = sql.join(
  columns.map(([key, column]) => sql`${sql.placeholder(key)}::${sql.raw(column.getSQLType())}[]`),
  sql`, `,
);

/**
 * The rows of a batch, from one array per inserted column, filled by {@link columnArrays}. All other columns are null.
 */
export const unnestedRows: SQL = sql`select *, ${unset}, null::jsonb, null::jsonb from unnest(${arrays})`;

const names = sql.join(
  columns.map(([, column]) => sql.identifier(column.name)),
  sql`, `,
);

/** The same rows with an additional array, `metadata`. */
export const unnestedRowsWithMetadata: SQL = sql`select ${names}, ${unset}, metadata, null::jsonb from unnest(${arrays}, ${sql.placeholder('metadata')}::jsonb[]) as new (${names}, metadata)`;

/** Returns the rows as one array literal per column. */
export function columnArrays(rows: readonly NewOrderRow[]): Record<string, string> {
  return Object.fromEntries(
    columns.map(([key, column]) => {
      const pick = (row: NewOrderRow) => {
        const value = row[key];
        return value === null || key === 'expiresAt'
          ? (value as string | null)
          : (column.mapToDriverValue(value) as string);
      };
      return [key, arrayLiteral(rows, pick)];
    }),
  );
}

/** Returns the rows and the metadata of each in the form that the function `insert_orders` expects. */
export function rowsAsJson(rows: readonly NewOrderRow[], metadata: readonly (Metadata | null)[]): string {
  const named = (row: NewOrderRow) => Object.fromEntries(columns.map(([key, { name }]) => [name, row[key]]));
  return JSON.stringify(rows.map((row, index) => ({ ...named(row), metadata: metadata[index] })));
}

/** Returns the row that stores a new order. */
export function rowOf(order: Order): NewOrderRow {
  const { merchantId, serviceOrderId, orderToken, orderStatus, createdAtMs, expiresAtMs, fields } = order;
  return {
    merchantId,
    serviceOrderId,
    orderToken,
    orderStatus,
    createdAt: new Date(createdAtMs),
    ...fields,
    order_amount: formatAmount(fields.order_amount),
    expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
  };
}

/**
 * Returns the order of a row; it is `EXPIRED` if the row's status is `null`. Throws if the amount is not valid. Names
 * every member, because the rest of a destructured row took ten times as long.
 */
export function orderOf(row: ReadRow): Order {
  const { leaseCheckoutId, leaseAttemptId, leaseEndsAt, paidAt, paymentId } = row;
  return {
    merchantId: row.merchantId as AccountId,
    serviceOrderId: row.serviceOrderId,
    orderToken: row.orderToken as OrderToken,
    orderStatus: row.orderStatus ?? transitions.expire.to,
    createdAtMs: row.createdAt.getTime(),
    expiresAtMs: row.expiresAt?.getTime() ?? null,
    lease:
      leaseCheckoutId === null || leaseAttemptId === null || leaseEndsAt === null
        ? null
        : {
            checkoutId: leaseCheckoutId as AccountId,
            attemptId: leaseAttemptId,
            endsAtMs: leaseEndsAt.getTime(),
            isLive: row.isLeaseLive === true,
          },
    endedAttempts: row.endedAttempts?.map(attemptOf) ?? noAttempts,
    payment:
      paidAt === null || paymentId === null
        ? null
        : { checkoutId: row.checkoutId as AccountId | null, paymentId, paidAtMs: paidAt.getTime() },
    refusedPayments: row.refusedPayments?.map(refusedPaymentOf) ?? noRefusedPayments,
    reversals: row.reversals === null ? noReversals : reversalsOf(row.reversals),
    cancelledAtMs: row.cancelledAt?.getTime() ?? null,
    erasedDigest: row.erasedDigest,
    metadata: row.metadata,
    fields: fieldsOf(row),
  };
}

function fieldsOf(row: ReadRow): OrderFields {
  return {
    order_id: row.order_id,
    order_amount: amountOf(row.order_amount),
    order_currency: row.order_currency,
    order_note: row.order_note,
    service_type: row.service_type,
    customer_name: row.customer_name,
    customer_email: row.customer_email,
    customer_phone: row.customer_phone,
    customer_address_line1: row.customer_address_line1,
    customer_address_line2: row.customer_address_line2,
    customer_address_city: row.customer_address_city,
    customer_address_state: row.customer_address_state,
    customer_address_country: row.customer_address_country,
    customer_address_postal_code: row.customer_address_postal_code,
    order_checksum: row.order_checksum,
    return_url: row.return_url,
    customer_locale: row.customer_locale,
  };
}

function attemptOf({ checkout_id, attempt_id }: AttemptJson): PaymentAttempt {
  return { checkoutId: checkout_id as AccountId, attemptId: attempt_id };
}

/** Returns a refused payment that is stored as JSON. Throws if the amount is not valid. */
export function refusedPaymentOf(stored: RefusedPaymentJson): RefusedPayment {
  return {
    checkoutId: stored.checkout_id as AccountId | null,
    paymentId: stored.payment_id,
    paidAtMs: Date.parse(stored.paid_at),
    amount: amountOf(String(stored.amount)),
    currency: stored.currency,
    code: stored.code,
    refusedAtMs: Date.parse(stored.refused_at),
  };
}

/** Returns the refunds and disputes in the form in which they are stored. */
export function reversalsAsJson(reversals: Reversals): string {
  return JSON.stringify(reversals, (_, value) =>
    typeof value === 'bigint' ? formatAmount(value as AmountHundredths) : value,
  );
}

function reversalsOf({ version, refunds, disputes }: ReversalsJson): Reversals {
  const withAmount = <Stored extends { readonly amount: string }>(stored: Stored) => ({
    ...stored,
    amount: amountOf(stored.amount),
  });
  return {
    version,
    refunds: refunds.map(withAmount) as unknown as Reversals['refunds'],
    disputes: disputes.map(withAmount) as unknown as Reversals['disputes'],
  };
}

/** Returns an amount that is stored as text. Throws if it is not valid. */
export function amountOf(stored: string): AmountHundredths {
  const amount = parseAmount(stored);
  if (!amount.ok) throw new RangeError(`the stored amount is ${amount.failure}`);
  return amount.value;
}
