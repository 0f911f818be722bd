import { checksumModes, consoleRoles, lateDays, logoTypes, merchantModes } from '@order-gateway/domain/accounts';
import { eventTypes } from '@order-gateway/domain/events';
import { amountDecimals, amountHundredthsMax } from '@order-gateway/domain/money';
import {
  type Metadata,
  type OrderStatus,
  orderStatuses,
  type RefusalCode,
  type Reversals,
  refusalCodes,
  serviceTypes,
} from '@order-gateway/domain/orders';
import { and, eq, gt, isNotNull, isNull, lte, or, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import {
  type AnyPgColumn,
  bigint,
  boolean,
  check,
  customType,
  date,
  index,
  integer,
  jsonb,
  numeric,
  pgSequence,
  pgTable,
  pgView,
  primaryKey,
  text,
  timestamp,
  unique,
  uniqueIndex,
} from 'drizzle-orm/pg-core';

// Every unique key of a table that grows with the orders includes merchant_id, except that of the payments. The only
// foreign keys reference the accounts. So the tables can be sharded by merchant_id unchanged.

const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' });

/** The digits of the largest amount; the last {@link amountDecimals} are decimals. */
const amountDigits = amountHundredthsMax.toString().length;

const timestamptz = (name: string) => timestamp(name, { precision: 3, withTimezone: true, mode: 'date' });

/** The condition of a CHECK constraint: the column has one of the values. */
const oneOf = (column: AnyPgColumn, values: readonly string[]): SQL =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`;

/** Merchants, and checkout systems, which own no orders. */
export const accountKinds = ['merchant', 'checkout'] as const;

/**
 * Merchants and checkout systems, each with one client id. Both kinds have secrets, and they share one sequence of ids.
 */
export const accounts = pgTable('accounts', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  name: text('name').notNull(),
  clientId: text('client_id').notNull().unique(),
  kind: text('kind', { enum: accountKinds }).notNull().default('merchant'),
  checksumMode: text('checksum_mode', { enum: checksumModes }).notNull().default('versioned'),
  mode: text('mode', { enum: merchantModes }).notNull().default('live'),
  /** The lifetime of an order that is sent without order_expires_at; `null`: it never expires. */
  defaultLifetimeSeconds: integer('default_lifetime_seconds'),
  /** If set, no credentials work and no payment starts. */
  disabledAt: timestamptz('disabled_at'),
  /** Calls per second in one process; `null`: the limit configured for all accounts. */
  rateLimit: integer('rate_limit'),
  /** For how many days after an order's expiry a checkout system can report a payment that was made in time. */
  lateDays: integer('late_days').notNull().default(lateDays.byDefault),
  /** Whether a checkout system gets the customer's data once it has claimed an order. */
  getsCustomerData: boolean('gets_customer_data').notNull().default(false),
  /** Whether a checkout system makes the refunds of the payments that it reported. */
  makesRefunds: boolean('makes_refunds').notNull().default(false),
  createdAt: timestamptz('created_at').notNull().defaultNow(),
});

/**
 * Actions of operators, of merchants on their endpoints, secrets and brands, and of people in the console. A trigger
 * that a migration creates rejects every change of an entry.
 */
export const auditLog = pgTable(
  'audit_log',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
    /**
     * A user and host, a name that the operator gave, the client id of the merchant, or `console:` and a person's name.
     */
    actor: text('actor').notNull(),
    action: text('action').notNull(),
    clientId: text('client_id'),
    details: jsonb('details').$type<Readonly<Record<string, unknown>>>().notNull(),
  },
  (table) => [index('audit_log_client').on(table.clientId, table.id)],
);

/**
 * The changes of merchants' payment instructions, from the audit log, which the gateway's own role can't read. A
 * change of the brand that repeats the text is not one of them.
 */
export const instructionChanges = pgView('instruction_changes', {
  id: bigint('id', { mode: 'number' }).notNull(),
  createdAt: timestamptz('created_at').notNull(),
  actor: text('actor').notNull(),
  clientId: text('client_id').notNull(),
  /** Empty: removed. */
  instructions: text('instructions').notNull(),
}).as(sql`
  select id, created_at, actor, client_id, instructions from (
    select id, created_at, actor, client_id, details->>'payment_instructions' as instructions,
      lag(details->>'payment_instructions', 1, '') over (partition by client_id order by id) as previous
    from audit_log where action = 'brand' and details ? 'payment_instructions'
  ) as sent where instructions <> previous`);

/** A column with the id of an account. */
const ofAccount = (name: string) => bigint(name, { mode: 'number' }).references(() => accounts.id);

/**
 * How a merchant's payment pages look. Every page reads all columns except `logo`, which is read only by its digest.
 */
export const brands = pgTable(
  'brands',
  {
    merchantId: ofAccount('merchant_id').primaryKey(),
    color: text(),
    support_email: text(),
    support_url: text(),
    terms_url: text(),
    privacy_url: text(),
    payment_instructions: text(),
    logo: bytea('logo'),
    /** The SHA-256 of the logo in base64url. */
    logoDigest: text('logo_digest'),
    logoType: text('logo_type', { enum: logoTypes }),
    logoWidth: integer('logo_width'),
    logoHeight: integer('logo_height'),
  },
  (table) => [index('brands_logo_digest').on(table.logoDigest)],
);

/**
 * The SHA-256 of each client secret. A secret works until `ends_at`; revoking it sets `ends_at` to now or to a later
 * time.
 */
export const clientSecrets = pgTable(
  'client_secrets',
  {
    id: bigint('id', { mode: 'number' }).generatedAlwaysAsIdentity(),
    accountId: ofAccount('account_id').notNull(),
    secretHash: bytea('secret_hash').notNull(),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
    endsAt: timestamptz('ends_at'),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.id] })],
);

/** Whether a secret works now, by the database's clock. */
export const isLiveSecret = or(isNull(clientSecrets.endsAt), gt(clientSecrets.endsAt, sql`now()`));

/**
 * The people who are signed in to the console. Signing out deletes the row of a session; the next sign-in to the same
 * account deletes the rows of expired sessions.
 */
export const consoleSessions = pgTable(
  'console_sessions',
  {
    accountId: ofAccount('account_id').notNull(),
    id: bigint('id', { mode: 'number' }).generatedAlwaysAsIdentity(),
    /** The SHA-256 of the cookie's value. */
    tokenDigest: bytea('token_digest').notNull().unique(),
    name: text('name').notNull(),
    role: text('role', { enum: consoleRoles }).notNull(),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
    lastSeenAt: timestamptz('last_seen_at').notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.id] }),
    check('console_sessions_role', oneOf(table.role, consoleRoles)),
  ],
);

/** One-time links that sign people in to the console. A sign-in deletes its link. */
export const consoleLinks = pgTable(
  'console_links',
  {
    /** The SHA-256 of the token in the link. */
    tokenDigest: bytea('token_digest').primaryKey(),
    accountId: ofAccount('account_id').notNull(),
    name: text('name').notNull(),
    role: text('role', { enum: consoleRoles }).notNull(),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
    /** The id of the session that created the link, which works only as long as the session; null for an operator. */
    createdBySession: bigint('created_by_session', { mode: 'number' }),
  },
  (table) => [check('console_links_role', oneOf(table.role, consoleRoles))],
);

/**
 * Orders, one row each, with columns named as in the domain. Only the status, the columns after customer_locale and, in
 * an erasure, the personal fields ever change.
 */
export const orders = pgTable(
  'orders',
  {
    merchantId: ofAccount('merchant_id').notNull(),
    serviceOrderId: bigint('service_order_id', { mode: 'number' }).notNull(),
    orderToken: text('order_token').notNull(),
    orderStatus: text('order_status', { enum: orderStatuses }).notNull(),
    createdAt: timestamptz('created_at').notNull(),
    order_id: text().notNull(),
    order_amount: numeric({ precision: amountDigits, scale: amountDecimals }).notNull(),
    order_currency: text().notNull(),
    order_note: text().notNull(),
    service_type: text({ enum: serviceTypes }).notNull(),
    customer_name: text().notNull(),
    customer_email: text().notNull(),
    customer_phone: text().notNull(),
    customer_address_line1: text().notNull(),
    customer_address_line2: text().notNull(),
    customer_address_city: text().notNull(),
    customer_address_state: text().notNull(),
    customer_address_country: text().notNull(),
    customer_address_postal_code: text().notNull(),
    order_checksum: text().notNull(),
    return_url: text().notNull(),
    customer_locale: text().notNull(),
    expiresAt: timestamptz('order_expires_at'),
    paidAt: timestamptz('paid_at'),
    paymentId: text('payment_id'),
    cancelledAt: timestamptz('cancelled_at'),
    /** Set when the personal fields were erased. It identifies the order when it is sent again. */
    erasedDigest: bytea('erased_digest'),
    /** The checkout system that reported the payment; `null` for a simulated one. */
    checkoutId: bigint('checkout_id', { mode: 'number' }),
    /** The latest lease: the attempt of a checkout system, and when its claim on the order ends or ended. */
    leaseCheckoutId: bigint('lease_checkout_id', { mode: 'number' }),
    leaseAttemptId: text('lease_attempt_id'),
    leaseEndsAt: timestamptz('lease_ends_at'),
    /** The attempts that ended and can't claim the order again; `null`: none. */
    endedAttempts: jsonb('ended_attempts').$type<readonly AttemptJson[]>(),
    /** The latest of {@link refusedPayments}, so that a read needs no join; `null`: none. */
    refusedPayments: jsonb('refused_payments').$type<readonly RefusedPaymentJson[]>(),
    /** The merchant's own data; `null` if there is none, and after an erasure. */
    metadata: jsonb('metadata').$type<Metadata>(),
    /**
     * The refunds and disputes, so that a read needs no join, and a change needs one comparison; `null`: none
     * (docs/decisions/091-refunds-are-stored-with-their-order.md).
     */
    reversals: jsonb('reversals').$type<ReversalsJson>(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.order_id] }),
    // The id is the first column, so that one lookup shows whether the ids of a block are in use.
    unique('orders_service_order_id').on(table.serviceOrderId, table.merchantId),
    index('orders_order_token').on(table.orderToken, table.merchantId),
    // A list reads one range per status, so that a filter for a rare status reads no other rows.
    index('orders_list').on(table.merchantId, table.orderStatus, table.createdAt, table.serviceOrderId),
    // Serves the erasure of old orders.
    index('orders_not_erased').on(table.createdAt).where(sql`${table.erasedDigest} is null`),
    // Contains only unpaid orders with an expiry, so creating any other order costs nothing.
    index('orders_unpaid_expiry')
      .on(table.expiresAt)
      .where(sql`${table.orderStatus} = 'UN_PAID' and ${table.expiresAt} is not null`),
    // The same orders by merchant: a list of expired orders also reads those whose expiry is not stored yet.
    index('orders_unpaid_expiry_of_merchant')
      .on(table.merchantId, table.expiresAt)
      .where(sql`${table.orderStatus} = 'UN_PAID' and ${table.expiresAt} is not null`)
      .concurrently(),
    // Contains only paid orders.
    index('orders_payment').on(table.merchantId, table.paymentId).where(isNotNull(table.paymentId)).concurrently(),
    check('orders_amount_positive', sql`${table.order_amount} > 0`),
    check('orders_status', oneOf(table.orderStatus, orderStatuses)),
    check(
      'orders_paid',
      sql`(${table.orderStatus} = 'PAID') = (${table.paidAt} is not null and ${table.paymentId} is not null)`,
    ),
    check('orders_cancelled', sql`(${table.orderStatus} = 'CANCELLED') = (${table.cancelledAt} is not null)`),
  ],
);

/**
 * The order for which a checkout system reported a payment, whether the payment paid it or was refused. Written with
 * the change of the order, or on Citus before it, so that a payment belongs to only one order across all merchants. The
 * key can't include merchant_id (docs/decisions/048-payments-have-a-table.md).
 */
export const payments = pgTable(
  'payments',
  {
    checkoutId: ofAccount('checkout_id').notNull(),
    paymentId: text('payment_id').notNull(),
    merchantId: ofAccount('merchant_id').notNull(),
    order_id: text().notNull(),
    /** The date of a payment that was reported without a time. */
    paidOn: date('paid_on', { mode: 'string' }),
    /** The merchant's note about a payment that it recorded itself. */
    note: text('note'),
  },
  (table) => [primaryKey({ columns: [table.checkoutId, table.paymentId] })],
);

/** A payment attempt as JSON. */
export interface AttemptJson {
  readonly checkout_id: number;
  readonly attempt_id: string;
}

/** A value whose amounts are text with two decimals, because JSON has no exact integers of their size. */
type WithAmountText<Value> = Value extends bigint
  ? string
  : Value extends readonly (infer Item)[]
    ? readonly WithAmountText<Item>[]
    : Value extends object
      ? { readonly [Key in keyof Value]: WithAmountText<Value[Key]> }
      : Value;

/** The refunds and disputes of an order as JSON. */
export type ReversalsJson = WithAmountText<Reversals>;

/** A row of {@link refusedPayments} as JSON. */
export interface RefusedPaymentJson {
  readonly checkout_id: number | null;
  readonly payment_id: string;
  /** At most 15 digits, which a double stores exactly. */
  readonly amount: number;
  readonly currency: string;
  readonly paid_at: string;
  readonly code: RefusalCode;
  readonly refused_at: string;
}

/**
 * Payments that were reported but did not pay their orders, and must be refunded. Those of checkout systems are also in
 * {@link payments}, which makes them unique across all orders.
 */
export const refusedPayments = pgTable(
  'refused_payments',
  {
    merchantId: ofAccount('merchant_id').notNull(),
    order_id: text().notNull(),
    /** `null` for a simulated payment. */
    checkoutId: bigint('checkout_id', { mode: 'number' }),
    paymentId: text('payment_id').notNull(),
    amount: numeric('amount', { precision: amountDigits, scale: amountDecimals }).notNull(),
    currency: text('currency').notNull(),
    paidAt: timestamptz('paid_at').notNull(),
    code: text('code', { enum: refusalCodes }).notNull(),
    refusedAt: timestamptz('refused_at').notNull(),
    /** When the whole amount was refunded; `null` while some of it is owed. */
    refundedAt: timestamptz('refunded_at'),
  },
  (table) => [
    // Each refused payment of an order has a different time.
    primaryKey({ name: 'refused_payments_pk', columns: [table.merchantId, table.order_id, table.refusedAt] }),
    unique('refused_payments_payment')
      .on(table.merchantId, table.order_id, table.checkoutId, table.paymentId)
      .nullsNotDistinct(),
    // Of the refused payments with one id, the latest is the last in the id's range.
    index('refused_payments_payment_id').on(table.merchantId, table.paymentId, table.refusedAt).concurrently(),
    // Serves the operators' list of the latest refused payments of all merchants.
    index('refused_payments_refused_at').on(table.refusedAt, table.paymentId).concurrently(),
    // Contains only those that are owed.
    index('refused_payments_owed').on(table.refusedAt).where(isNull(table.refundedAt)).concurrently(),
    check('refused_payments_code', oneOf(table.code, refusalCodes)),
  ],
);

/** The pending refunds of payments that checkout systems reported: the queue from which they make them. */
export const pendingRefunds = pgTable(
  'pending_refunds',
  {
    merchantId: ofAccount('merchant_id').notNull(),
    serviceOrderId: bigint('service_order_id', { mode: 'number' }).notNull(),
    /** Each refund of an order has a different time. */
    createdAt: timestamptz('created_at').notNull(),
    order_id: text().notNull(),
    orderToken: text('order_token').notNull(),
    checkoutId: bigint('checkout_id', { mode: 'number' }).notNull(),
    paymentId: text('payment_id').notNull(),
    /** The merchant's id of the refund; `null` if it was made at the provider. */
    refundId: text('refund_id'),
    providerRefundId: text('provider_refund_id'),
    amount: numeric('amount', { precision: amountDigits, scale: amountDecimals }).notNull(),
    currency: text('currency').notNull(),
  },
  (table) => [
    primaryKey({ name: 'pending_refunds_pk', columns: [table.merchantId, table.serviceOrderId, table.createdAt] }),
    index('pending_refunds_of_checkout').on(table.checkoutId, table.createdAt, table.serviceOrderId),
  ],
);

/** Whether a payment attempt holds an order, by the database's clock; `null` without a lease. */
export const isLeaseLive = sql<boolean | null>`(${orders.leaseEndsAt} > now())`;

/** Whether an attempt has ended, so that it can't claim the order again; `null` if no attempt has. */
export const isEndedAttempt = (checkoutId: SQL, attemptId: SQL): SQL =>
  sql`(${orders.endedAttempts} @> ${attemptJson(checkoutId, attemptId)})`;

/**
 * The values of an order whose latest lease, which is that of the attempt, and the attempt end now, unless the lease
 * ended before. The attempt is given by values, because Citus rejects a change that builds JSON from columns.
 */
export const endedNow = (checkoutId: SQL, attemptId: SQL) => ({
  leaseEndsAt: sql`least(${orders.leaseEndsAt}, date_trunc('milliseconds', now()))`,
  endedAttempts: sql`coalesce(${orders.endedAttempts}, '[]') || ${attemptJson(checkoutId, attemptId)}`,
});

function attemptJson(checkoutId: SQL, attemptId: SQL): SQL {
  return sql`jsonb_build_array(jsonb_build_object('checkout_id', ${checkoutId}, 'attempt_id', ${attemptId}))`;
}

/** Whether an unpaid order has expired, by the database's clock. An order never expires before its lease ends. */
export const isExpired = and(
  eq(orders.orderStatus, 'UN_PAID'),
  lte(orders.expiresAt, sql`now()`),
  sql`${isLeaseLive} is not true`,
);

/**
 * One row per metadata pair of an order, in the order of lists; orders without metadata have none
 * (docs/decisions/058-metadata-has-a-table.md). A digest stands for the pair, which keeps rows short; the order has the
 * text.
 */
export const orderMetadata = pgTable(
  'order_metadata',
  {
    merchantId: ofAccount('merchant_id').notNull(),
    pairDigest: bytea('pair_digest').notNull(),
    createdAt: timestamptz('created_at').notNull(),
    serviceOrderId: bigint('service_order_id', { mode: 'number' }).notNull(),
  },
  (table) => [
    primaryKey({
      name: 'order_metadata_pk',
      columns: [table.merchantId, table.pairDigest, table.createdAt, table.serviceOrderId],
    }),
  ],
);

/** The digest of a pair. A key contains no `=`. */
export const pairDigest = (key: SQLWrapper, value: SQLWrapper): SQL =>
  sql`sha256(convert_to(${key} || '=' || ${value}, 'UTF8'))`;

/** The status, or `null` for an expired order that is still stored as unpaid. See `expired-orders.ts`. */
export const statusUnlessExpired = sql<OrderStatus | null>`case when (${isExpired}) is not true then ${orders.orderStatus} end`;

/**
 * One row per change of an order that merchants learn of, written with it. The order is looked up when an event
 * is read. The first read of the feed after that assigns the event its position
 * (docs/decisions/060-positions-in-the-feed.md).
 */
export const events = pgTable(
  'events',
  {
    merchantId: ofAccount('merchant_id').notNull(),
    /**
     * Begins with the time, so that a merchant's ids sort in the order of the events, and new ones are added at the
     * end.
     */
    eventId: text('event_id').notNull(),
    /** The position in the merchant's feed; `null` until the feed is read. */
    position: bigint('position', { mode: 'number' }),
    type: text('type', { enum: eventTypes }).notNull(),
    createdAt: timestamptz('created_at').notNull(),
    order_id: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.eventId] }),
    uniqueIndex('events_position').on(table.merchantId, table.position).where(isNotNull(table.position)),
    // Serves the feed and the deliveries of one order.
    index('events_order').on(table.merchantId, table.order_id, table.position).concurrently(),
    index('events_without_position').on(table.merchantId, table.eventId).where(isNull(table.position)),
    // Serves the deletion of old events. A BRIN index does not fit, because its ranges keep the times of deleted rows.
    index('events_created_at').on(table.createdAt),
    check('events_type', oneOf(table.type, eventTypes)),
  ],
);

/** Returns the beginning of the ids of events that are stored at a given time. */
export const eventIdAt = (time: SQL): SQL => sql`'evt_' || to_hex((extract(epoch from ${time}) * 1000000)::bigint)`;

/**
 * The last position in each merchant's feed. It is locked while positions are assigned, so that events become visible
 * in the order of their positions.
 */
export const eventFeeds = pgTable('event_feeds', {
  merchantId: ofAccount('merchant_id').primaryKey(),
  lastPosition: bigint('last_position', { mode: 'number' }).notNull(),
});

/** The endpoints to which a merchant's events are delivered. Secrets are encrypted with SECRETS_KEY. */
export const webhookEndpoints = pgTable(
  'webhook_endpoints',
  {
    merchantId: ofAccount('merchant_id').notNull(),
    endpointId: text('endpoint_id').notNull(),
    url: text('url').notNull(),
    /** The types of events that are delivered; `null`: all. */
    eventTypes: text('event_types', { enum: eventTypes }).array(),
    signingSecret: bytea('signing_secret').notNull(),
    previousSecret: bytea('previous_secret'),
    /** Deliveries are signed with both secrets until this time. */
    previousEndsAt: timestamptz('previous_ends_at'),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
    /** Set by the merchant, or when the endpoint responds with 410. Deliveries then stop. */
    disabledAt: timestamptz('disabled_at'),
    /** When attempts began to fail; `null` while the endpoint works. */
    failingSince: timestamptz('failing_since'),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.endpointId] })],
);

/** The previous secret while deliveries are signed with it, by the database's clock. */
export const livePreviousSecret = sql<Uint8Array | null>`case when ${webhookEndpoints.previousEndsAt} > now() then ${webhookEndpoints.previousSecret} end`;

/** An event to deliver to an endpoint, and the result: both the queue and its record. */
export const webhookDeliveries = pgTable(
  'webhook_deliveries',
  {
    merchantId: ofAccount('merchant_id').notNull(),
    endpointId: text('endpoint_id').notNull(),
    eventId: text('event_id').notNull(),
    attempts: integer('attempts').notNull(),
    /** `null`: delivered, or given up. */
    nextAttemptAt: timestamptz('next_attempt_at'),
    lastAttemptAt: timestamptz('last_attempt_at'),
    deliveredAt: timestamptz('delivered_at'),
    /** The HTTP status or the reason for the failure, without any other part of the response. */
    lastResult: text('last_result'),
  },
  (table) => [
    // In the order of the events, so that a list reads only its page and new rows are added at the end.
    primaryKey({
      name: 'webhook_deliveries_pk',
      columns: [table.merchantId, table.eventId, table.endpointId],
    }),
    index('webhook_deliveries_due')
      .on(table.merchantId, table.endpointId, table.nextAttemptAt)
      .where(sql`${table.nextAttemptAt} is not null`),
    // Serves lists and redeliveries of failed deliveries. It has few rows, and none for a delivery that succeeds.
    index('webhook_deliveries_failed')
      .on(table.merchantId, table.endpointId, table.eventId)
      .where(sql`${table.nextAttemptAt} is null and ${table.deliveredAt} is null`),
  ],
);

/** Joins a delivery with its event by all columns of the event's key. */
export const isEventOfDelivery = and(
  eq(events.merchantId, webhookDeliveries.merchantId),
  eq(events.eventId, webhookDeliveries.eventId),
);

/** Numbers the blocks of service order ids; one `nextval` reserves one block. */
export const serviceOrderIdBlocks = pgSequence('service_order_id_blocks', { startWith: 1 });
