/** The result of an operation that can fail in expected ways. Such a failure is a value, never an exception. */
export type Result<Value, Failure> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly failure: Failure };

/** A successful result. */
export function success<const Value>(value: Value): { readonly ok: true; readonly value: Value } {
  return { ok: true, value };
}

/** A failed result. */
export function failed<const Failure>(failure: Failure): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure };
}

/**
 * Why a store did not complete a call. After `unavailable` and `deadline_exceeded`, the call's changes may have been
 * stored.
 */
export type StoreFailure =
  /** Too many calls are waiting. Nothing was read or written. */
  | { readonly kind: 'overloaded' }
  /** The database was not reachable, or its response was lost. */
  | { readonly kind: 'unavailable' }
  /** The time limit of the call has passed. */
  | { readonly kind: 'deadline_exceeded' };
