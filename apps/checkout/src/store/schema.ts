import { type SQL, sql } from 'drizzle-orm';
import {
  bigint,
  customType,
  date,
  index,
  integer,
  json,
  jsonb,
  pgSchema,
  text,
  timestamp,
  unique,
  uniqueIndex,
} from 'drizzle-orm/pg-core';

const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' });

const timestamptz = (name: string) => timestamp(name, { precision: 3, withTimezone: true, mode: 'date' });

/** The schema of all tables of the checkout. */
export const checkout = pgSchema('checkout');

/** The states of an attempt. `life.ts` defines what happens in each of them. */
export const attemptStates = [
  'NEW',
  'OPEN',
  'CLAIMED',
  'VOIDING',
  'ENDING',
  'ENDED',
  'CAPTURED',
  'RECORDED',
  'OWED',
  'REFUNDED',
] as const;

export type AttemptState = (typeof attemptStates)[number];

/**
 * The states in which an order cannot get another attempt. An attempt that owes money back does not keep the customer
 * from paying the right amount.
 */
export const unfinishedStates = ['NEW', 'OPEN', 'CLAIMED', 'VOIDING', 'ENDING', 'CAPTURED'] as const;

/** The states of a payment that paid its order, or was refunded. Only its refunds and disputes can still change. */
export const decidedStates = ['RECORDED', 'REFUNDED'] as const;

/** The reason of an attempt whose payment a person refunded without the provider. */
export const refundedByHand = 'refunded_by_hand';

const isUnfinished = (state: unknown): SQL =>
  sql`${state} in (${sql.raw(unfinishedStates.map((name) => `'${name}'`).join(', '))})`;

/** The merchants' own accounts at providers. */
export const connections = checkout.table(
  'connections',
  {
    connectionId: text('connection_id').primaryKey(),
    /** The merchant's client id at the gateway. */
    merchantId: text('merchant_id').notNull(),
    provider: text('provider').notNull(),
    mode: text('mode', { enum: ['live', 'test'] }).notNull(),
    /** The provider's identifier of the account, which another key must prove again. */
    account: text('account').notNull(),
    /** The provider's settings, without secrets. */
    settings: jsonb('settings').$type<Readonly<Record<string, string>>>().notNull().default({}),
    /** The provider's secrets as encrypted JSON, bound to the connection. */
    secrets: bytea('secrets').notNull(),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
    /** If set, no attempts start. */
    disconnectedAt: timestamptz('disconnected_at'),
    /** The time up to which the provider's list of changed attempts was read. */
    listedUntil: timestamptz('listed_until').notNull().defaultNow(),
    /** The time up to which the provider's list of changed refunds and disputes was read. */
    reversedUntil: timestamptz('reversed_until').notNull().defaultNow(),
    /** When all payments were last compared; 18 hours before a comparison that has not ended. */
    comparedAt: timestamptz('compared_at').notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex('connections_current').on(table.merchantId, table.provider).where(sql`${table.disconnectedAt} is null`),
  ],
);

/** The attempts to pay an order. */
export const attempts = checkout.table(
  'attempts',
  {
    attemptId: text('attempt_id').primaryKey(),
    orderToken: text('order_token').notNull(),
    merchantId: text('merchant_id').notNull(),
    orderId: text('order_id').notNull(),
    serviceOrderId: bigint('service_order_id', { mode: 'number' }).notNull(),
    provider: text('provider').notNull(),
    /** Absent for a provider without accounts. */
    connectionId: text('connection_id'),
    method: text('method').notNull(),
    amountHundredths: bigint('amount_hundredths', { mode: 'bigint' }).notNull(),
    currency: text('currency').notNull(),
    /** The customer's language when the session was opened, because the provider's page keeps it. */
    locale: text('locale').notNull(),
    state: text('state', { enum: attemptStates }).notNull().default('NEW'),
    /** Why the attempt ended without a payment: a code of the provider or of the gateway. */
    reason: text('reason'),
    sessionId: text('session_id'),
    /** The address at which the customer pays. It is stored before any customer gets it. */
    sessionUrl: text('session_url'),
    /** When the session ends: chosen before it is opened, and then as the provider reports it. */
    sessionEndsAt: timestamptz('session_ends_at').notNull(),
    /** The payment as the provider reported it, stored once. */
    paymentId: text('payment_id'),
    paidAt: timestamptz('paid_at'),
    paidHundredths: bigint('paid_hundredths', { mode: 'bigint' }),
    paidCurrency: text('paid_currency'),
    /** When the provider gives up an authorisation that was not captured. */
    captureBefore: timestamptz('capture_before'),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
    changedAt: timestamptz('changed_at').notNull().defaultNow(),
    /** When the sweep continues the attempt; `null` if nothing is left to do. */
    dueAt: timestamptz('due_at').defaultNow(),
    /** The end of the lease of the process that works on the attempt. */
    leasedUntil: timestamptz('leased_until'),
    /** How often in a row the attempt could not be continued. */
    failures: integer('failures').notNull().default(0),
    /** How often the attempt was checked after its end. */
    looks: integer('looks').notNull().default(0),
  },
  (table) => [
    uniqueIndex('attempts_unfinished').on(table.orderToken).where(isUnfinished(table.state)),
    index('attempts_of_order').on(table.orderToken, table.createdAt),
    index('attempts_due').on(table.dueAt).where(sql`${table.dueAt} is not null`),
    index('attempts_of_session').on(table.connectionId, table.sessionId),
    index('attempts_of_payment').on(table.connectionId, table.paymentId),
  ],
);

/** An attempt to pay an order. */
export type Attempt = typeof attempts.$inferSelect;

/** Returns the payment of an attempt, as it is reported to the gateway. */
export const paymentOfAttempt = ({ paidHundredths, paidCurrency }: Attempt) => ({
  amount: paidHundredths ?? 0n,
  currency: paidCurrency ?? '',
});

/** The calls that change something at a provider, each stored before it is sent. */
export const calls = checkout.table(
  'calls',
  {
    callId: bigint('call_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    attemptId: text('attempt_id').notNull(),
    purpose: text('purpose').notNull(),
    /** The idempotency key. */
    key: text('key').notNull().unique(),
    /**
     * The exact request, which every call with this key repeats. `jsonb` would order its members differently, and
     * providers reject another request under the same key.
     */
    request: json('request').$type<object>().notNull(),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
    /** The provider's error, after which the key is not used again. */
    error: text('error'),
  },
  (table) => [index('calls_of_attempt').on(table.attemptId, table.purpose, table.callId)],
);

/** The payments of the provider `demo`, which moves no money. */
export const demoPayments = checkout.table('demo_payments', {
  /** The attempt's identifier. */
  sessionId: text('session_id').primaryKey(),
  state: text('state', { enum: ['open', 'authorised', 'captured', 'voided', 'refunded', 'declined'] })
    .notNull()
    .default('open'),
  endsAt: timestamptz('ends_at').notNull(),
  amountHundredths: bigint('amount_hundredths', { mode: 'bigint' }).notNull(),
  currency: text('currency').notNull(),
  /** When the payment was, or in a few seconds will be, authorised. */
  authorisedAt: timestamptz('authorised_at'),
});

/** The orders whose customers chose a transfer. */
export const transfers = checkout.table('transfers', {
  /** The creditor reference, which is made from the order's service_order_id. */
  reference: text('reference').primaryKey(),
  orderToken: text('order_token').notNull(),
  merchantId: text('merchant_id').notNull(),
  createdAt: timestamptz('created_at').notNull().defaultNow(),
});

/** The statements of accounts that were read, to notice a missing one. */
export const statements = checkout.table(
  'statements',
  {
    statementId: bigint('statement_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    account: text('account').notNull(),
    kind: text('kind', { enum: ['camt.053', 'camt.054', 'csv'] }).notNull(),
    number: bigint('number', { mode: 'number' }),
    writtenOn: date('written_on'),
    readAt: timestamptz('read_at').notNull().defaultNow(),
  },
  (table) => [
    unique('statements_once').on(table.account, table.kind, table.number, table.writtenOn).nullsNotDistinct(),
  ],
);

/** The credits of statements. Names and texts of payers are not stored. */
export const credits = checkout.table(
  'credits',
  {
    creditId: bigint('credit_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    account: text('account').notNull(),
    paymentId: text('payment_id').notNull().unique(),
    amountHundredths: bigint('amount_hundredths', { mode: 'bigint' }).notNull(),
    currency: text('currency').notNull(),
    /** Empty once it has been erased. */
    payerDigest: text('payer_digest').notNull(),
    /** The only creditor reference in the texts. */
    reference: text('reference'),
    paidAt: timestamptz('paid_at'),
    paidOn: date('paid_on').notNull(),
    /** The order for which the credit was, or will be, reported. */
    orderToken: text('order_token'),
    /** LISTED is for a person, WAITING for the end of another payment, and OWED until a person transferred it back. */
    state: text('state', { enum: ['LISTED', 'WAITING', 'RECORDED', 'OWED', 'REFUNDED'] }).notNull(),
    reason: text('reason'),
    createdAt: timestamptz('created_at').notNull().defaultNow(),
  },
  (table) => [
    index('credits_of_account').on(table.account, table.amountHundredths, table.paidOn),
    index('credits_waiting').on(table.creditId).where(sql`${table.state} = 'WAITING'`),
  ],
);

/** The actions of operators, like the gateway's audit log. */
export const auditLog = checkout.table('audit_log', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  at: timestamptz('at').notNull().defaultNow(),
  actor: text('actor').notNull(),
  action: text('action').notNull(),
  merchantId: text('merchant_id'),
  details: jsonb('details').$type<Readonly<Record<string, string | null>>>().notNull(),
});
