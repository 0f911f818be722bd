import { StartError } from '@order-gateway/runtime/process';
import { expect, test } from 'vitest';
import { createRefunds } from './refunds.ts';

/** Runs the job that erases keys, and returns the connections whose keys it keeps; `undefined` if it erases none. */
async function keptBy(isIncomplete: boolean): Promise<readonly string[] | undefined> {
  let kept: readonly string[] | undefined;
  const deps = {
    store: {
      reported: async () => ({ connectionId: 'con_refund' }),
      async eraseKeys(connectionIds: readonly string[]) {
        kept = connectionIds;
        return 0;
      },
    },
    gateway: {
      async *pendingRefunds() {
        yield { orderToken: 'token', paymentId: 'pi_1' };
        if (isIncomplete) throw new StartError('Refunds are missing.');
      },
    },
  };
  const { eraseKeys } = createRefunds(deps as unknown as Parameters<typeof createRefunds>[0]);
  await eraseKeys().catch((error: unknown) => expect(error).toBeInstanceOf(StartError));
  return kept;
}

test('the keys of connections with pending refunds are kept', async () => {
  expect(await keptBy(false)).toEqual(['con_refund']);
});

test('no key is erased while the gateway may not list all pending refunds', async () => {
  expect(await keptBy(true)).toBeUndefined();
});
