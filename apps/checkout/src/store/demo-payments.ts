import { and, eq } from 'drizzle-orm';
import type { Run } from './run.ts';
import { demoPayments } from './schema.ts';

/** Returns the payments of the provider `demo`. */
export function storeDemoPayments({ run, first }: Run) {
  return {
    /** Returns a payment of the provider `demo`. */
    findDemoPayment: (sessionId: string) =>
      first((db) => db.select().from(demoPayments).where(eq(demoPayments.sessionId, sessionId))),

    /** Stores a payment of the provider `demo`, once. */
    openDemoPayment: (payment: typeof demoPayments.$inferInsert) =>
      run((db) => db.insert(demoPayments).values(payment).onConflictDoNothing()),

    /** Changes a payment of the provider `demo` if it is in the state `from`. */
    changeDemoPayment: (
      sessionId: string,
      from: (typeof demoPayments.$inferSelect)['state'],
      change: Partial<typeof demoPayments.$inferInsert>,
    ) =>
      run((db) =>
        db
          .update(demoPayments)
          .set(change)
          .where(and(eq(demoPayments.sessionId, sessionId), eq(demoPayments.state, from)))
          .returning(),
      ),
  };
}
