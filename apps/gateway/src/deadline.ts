/** What a promise settles with, or `deadline_exceeded` where that takes longer; it is not stopped, only no longer waited for. */
export async function settledWithin<Value>(
  timeoutMs: number,
  promise: Promise<Value>,
): Promise<Value | 'deadline_exceeded'> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<'deadline_exceeded'>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, timeoutMs), 'deadline_exceeded');
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
