import { and, asc, eq, gt, gte, inArray, max, ne, or, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { connections, credits, statements } from '../store/schema.ts';
import type { Store } from '../store/store.ts';
import type { Statement } from './statement.ts';

/** A credit of a statement, as it is stored. */
export type StoredCredit = typeof credits.$inferSelect;

/** A credit that is stored if it is not known yet. */
export type NewCredit = typeof credits.$inferInsert;

/** The maximum number of days between the dates that a bank gives the same booking in two files. */
export const duplicateDays = 5;

/** Statements that are at least this many days apart can have numbers of different years. */
const numberDays = 100;

/** Opens what the checkout stores of statements. */
export function openCredits({ run, first }: Pick<Store, 'run' | 'first'>) {
  const select = (condition: SQL | undefined) => (db: PostgresJsDatabase) =>
    db.select().from(credits).where(condition).orderBy(asc(credits.creditId));
  const update = (creditId: number, set: Partial<StoredCredit>, condition: SQL | undefined) =>
    first((db) =>
      db
        .update(credits)
        .set(set)
        .where(and(eq(credits.creditId, creditId), condition))
        .returning({ creditId: credits.creditId }),
    );
  return {
    ...statementsOf({ run, first }),

    /** Stores a credit unless it is known. Returns it as it is stored. */
    async add(credit: NewCredit): Promise<StoredCredit | undefined> {
      const added = await first((db) => db.insert(credits).values(credit).onConflictDoNothing().returning());
      return added ?? (await this.findPayment(credit.paymentId));
    },

    /** Returns a credit by its payment_id. */
    findPayment: (paymentId: string) => first(select(eq(credits.paymentId, paymentId))),

    /** Returns a credit by its number. */
    find: (creditId: number) => first(select(eq(credits.creditId, creditId))),

    /** Whether a payment that equals a credit was reported under another payment_id. */
    isDuplicate: async ({ account, paymentId, amountHundredths, payerDigest, reference, paidOn }: NewCredit) => {
      const isReportedEqual = and(
        eq(credits.account, account),
        eq(credits.amountHundredths, amountHundredths),
        // An erased payer can be the same.
        inArray(credits.payerDigest, [payerDigest, '']),
        sql`${credits.reference} is not distinct from ${reference ?? null}`,
        sql`abs(${credits.paidOn} - ${paidOn}::date) <= ${duplicateDays}`,
        inArray(credits.state, ['WAITING', 'RECORDED', 'OWED', 'REFUNDED']),
        ne(credits.paymentId, paymentId),
      );
      return (await first(select(isReportedEqual))) !== undefined;
    },

    /**
     * Stores that a credit may have been reported for an order. Returns `false` if it may have been reported for
     * another one, or if it was reported.
     */
    async startReport(creditId: number, orderToken: string): Promise<boolean> {
      const { state, orderToken: reportedFor } = credits;
      const mayStart = or(eq(state, 'LISTED'), and(eq(state, 'WAITING'), eq(reportedFor, orderToken)));
      return (await update(creditId, { state: 'WAITING', reason: null, orderToken }, mayStart)) !== undefined;
    },

    /** Changes a credit that was not reported yet, and is in one of these states. */
    change: (
      creditId: number,
      change: Pick<StoredCredit, 'state' | 'reason'>,
      from: readonly StoredCredit['state'][] = ['LISTED', 'WAITING'],
    ) => update(creditId, change, inArray(credits.state, [...from])),

    /** Stores that a person transferred a credit back, or that the bank returned this transfer. */
    setRefunded: (creditId: number, isRefunded: boolean) =>
      update(creditId, { state: isRefunded ? 'REFUNDED' : 'OWED' }, inArray(credits.state, ['OWED', 'REFUNDED'])),

    /** Returns all credits that must be transferred back, oldest first. */
    owed: () => run(select(eq(credits.state, 'OWED'))),

    /** Returns credits that wait for the end of another payment, oldest first. */
    waiting: (limit: number, after = 0) =>
      run((db) => select(and(eq(credits.state, 'WAITING'), gt(credits.creditId, after)))(db).limit(limit)),
  };
}

/** Returns what is stored of the statements themselves. */
function statementsOf({ run, first }: Pick<Store, 'run' | 'first'>) {
  return {
    /** Returns the kind of the statements that were read since the account was last connected. */
    kindOf: async (account: string) => {
      const connectedAt = sql`(select ${max(connections.createdAt)} from ${connections} where ${connections.account} = ${account})`;
      const row = await first((db) =>
        db
          .select({ kind: statements.kind })
          .from(statements)
          .where(and(eq(statements.account, account), gte(statements.readAt, connectedAt)))
          .limit(1),
      );
      return row?.kind;
    },

    /** Stores that a statement was read. */
    addStatement: ({ account, kind, number, writtenOn }: Statement) =>
      run((db) =>
        db
          .insert(statements)
          .values({ account, kind, number: number ?? null, writtenOn: writtenOn ?? null })
          .onConflictDoUpdate({
            target: [statements.account, statements.kind, statements.number, statements.writtenOn],
            set: { readAt: sql`now()` },
          }),
      ),

    /** Returns those of these statements before which one was never read, although an earlier one was. */
    withGapBefore: async (read: readonly Statement[]): Promise<readonly Statement[]> => {
      const accounts = [...new Set(read.map(({ account }) => account))];
      const stored = await run((db) => db.select().from(statements).where(inArray(statements.account, accounts)));
      // A dry run stores none.
      const known = [...stored, ...read];
      return read.filter(({ account, kind, number, writtenOn }) => {
        if (number === undefined || number <= 1 || writtenOn === undefined) return false;
        const near = known.filter(
          (other) =>
            other.account === account &&
            other.kind === kind &&
            Math.abs(Date.parse(other.writtenOn ?? '') - Date.parse(writtenOn)) < numberDays * 86_400_000,
        );
        const isFirst = near.every((other) => `${other.writtenOn}` >= writtenOn);
        return !isFirst && near.every((other) => other.number !== number - 1);
      });
    },
  };
}
