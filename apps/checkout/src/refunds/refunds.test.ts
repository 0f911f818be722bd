import { StartError } from '@order-gateway/runtime/process';
import { expect, test } from 'vitest';
import { ProviderError } from '../providers/provider.ts';
import { createRefunds } from './refunds.ts';

/** Runs the job that erases keys, and returns the connections whose keys it keeps; `undefined` if it erases none. */
async function keptBy(isIncomplete: boolean): Promise<readonly string[] | undefined> {
  let kept: readonly string[] | undefined;
  const deps = {
    store: {
      findByPayment: async () => ({ connectionId: 'con_refund' }),
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

test('an account that does not respond delays no refund of another one', async () => {
  const looked: string[] = [];
  const attempt = { provider: 'listed', leasedUntil: new Date() };
  const deps = {
    store: {
      findByPayment: async (_token: string, paymentId: string) => ({
        attemptId: paymentId,
        connectionId: paymentId.at(0),
      }),
      lease: async (attemptId: string) => ({ ...attempt, attemptId, connectionId: attemptId.at(0) }),
      release: async () => {},
    },
    gateway: {
      async *pendingRefunds() {
        for (const paymentId of ['a1', 'a2', 'a3', 'b1']) yield { orderToken: paymentId, paymentId, refundId: 'r-1' };
      },
    },
    providers: new Map([
      [
        'listed',
        {
          async reversals(_account: unknown, { attemptId }: { readonly attemptId: string }) {
            looked.push(attemptId);
            throw new ProviderError('unanswered', 'no_response');
          },
        },
      ],
    ]),
    accountOf: async () => ({}),
    logger: { warn() {} },
  };
  const { makePending } = createRefunds(deps as unknown as Parameters<typeof createRefunds>[0]);
  await makePending();
  expect(looked).toEqual(['a1', 'b1']);
  await makePending();
  expect(looked).toEqual(['a1', 'b1', 'a2']);
});

test('the keys of connections with pending refunds are kept', async () => {
  expect(await keptBy(false)).toEqual(['con_refund']);
});

test('no key is erased while the gateway may not list all pending refunds', async () => {
  expect(await keptBy(true)).toBeUndefined();
});
