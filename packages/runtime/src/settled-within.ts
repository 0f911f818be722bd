/**
 * Returns the promise's value, or `deadline_exceeded` after `timeoutMs`. The work behind the promise is not stopped.
 */
export async function settledWithin<Value>(
  timeoutMs: number,
  promise: Promise<Value>,
): Promise<Value | 'deadline_exceeded'> {
  const late = Promise.withResolvers<'deadline_exceeded'>();
  const timer = setTimeout(late.resolve, Math.max(0, timeoutMs), 'deadline_exceeded');
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
