import type { AmountHundredths } from '@order-gateway/domain/money';
import type { statements } from '../store/schema.ts';

/** The start of a statement in a file. */
export interface Statement {
  readonly is: 'statement';
  /** The format. Banks use different references in each, so an account has statements of one kind. */
  readonly kind: (typeof statements.$inferSelect)['kind'];
  /** The account's IBAN, or another number of it, without spaces. */
  readonly account: string;
  /** The number of the statement, if the bank counts them. */
  readonly number?: number | undefined;
  /** The date on which the bank wrote the statement. */
  readonly writtenOn?: string | undefined;
}

/** Why a person has to look at a booking, which is no payment. */
export type BookingProblem = 'reversal' | 'other_currency' | 'batch_without_details' | 'unclear_amount' | 'no_date';

/** A booked credit of a statement, or a reversal. */
export interface Credit {
  readonly is: 'credit';
  readonly account: string;
  /** Identifies the payment, in every file that contains it. */
  readonly paymentId: string;
  /** Absent if the statement has no exact amount. */
  readonly amount?: AmountHundredths | undefined;
  readonly currency: string;
  /** The date of the booking, `YYYY-MM-DD`. */
  readonly date: string;
  /** When the payer's bank accepted the payment, if the statement has the time. */
  readonly acceptedAt?: Date | undefined;
  /** The name and the account of the payer, if they are known. They are shown, but not stored. */
  readonly payer: string;
  /** A digest of the payer's account, or else of the name. */
  readonly payerDigest: string;
  /** The creditor references of orders that the texts contain. */
  readonly references: readonly string[];
  readonly problem?: BookingProblem | undefined;
}

/** A file that is not what it says. Nothing of it is used. */
export class StatementError extends Error {
  override name = 'StatementError';
}
