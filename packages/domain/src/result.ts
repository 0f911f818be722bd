/** The result of an operation that is expected to fail at times: a value, never an exception. */
export type Result<Value, Failure> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly failure: Failure };

/** A successful result. */
export function success<Value>(value: Value): { readonly ok: true; readonly value: Value } {
  return { ok: true, value };
}

/** A failed result. */
export function failed<Failure>(failure: Failure): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure };
}

/** Why a store has no outcome for a call. After the last two failures, what the call writes may have been stored. */
export type StoreFailure =
  /** Too many calls are waiting. Nothing was read or written. */
  | { readonly kind: 'overloaded' }
  /** The database was not reachable, or its response was lost. */
  | { readonly kind: 'unavailable' }
  /** The time limit of the call has passed. */
  | { readonly kind: 'deadline_exceeded' };
