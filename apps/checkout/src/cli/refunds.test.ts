import { Command } from 'commander';
import { expect, test } from 'vitest';
import { ProviderError } from '../providers/provider.ts';
import type { GatewayDeps } from './commands.ts';
import { addRefundCommands } from './refunds.ts';

const failed = { providerRefundId: 're_1', status: 'FAILED', amount: 1_000n };

/** Runs `payments refunds` for two merchants, of whom one has replaced the key. Returns what it prints. */
async function listed(
  ...disputes: readonly object[]
): Promise<{ readonly lines: readonly string[]; readonly error: unknown }> {
  const attempt = { provider: 'listed', createdAt: new Date(0), paidHundredths: 1_000n, paidCurrency: 'EUR' };
  const deps = {
    store: {
      run: async () => [],
      listConnections: async () =>
        ['con_1', 'con_2'].map((connectionId) => ({ connectionId, secrets: new Uint8Array(1) })),
      refused: async () => [
        { ...attempt, attemptId: 'att_1', merchantId: 'app_live_1', connectionId: 'con_1' },
        { ...attempt, attemptId: 'att_2', merchantId: 'app_live_2', connectionId: 'con_2' },
      ],
    },
    gateway: { async *pendingRefunds() {} },
    providers: new Map([
      [
        'listed',
        {
          async reversals(account: string) {
            if (account === 'con_1') throw new ProviderError('unanswered', 'api_key_expired');
            return { refunds: [failed], disputes };
          },
        },
      ],
    ]),
    accountOf: async (connectionId: string) => connectionId,
  } as unknown as GatewayDeps;
  const lines: string[] = [];
  const program = new Command();
  addRefundCommands(program, (work) => work(deps), { print: (line) => void lines.push(line), actor: 'tester' });
  const error = await program.parseAsync(['refunds', '--json'], { from: 'user' }).catch((reason: unknown) => reason);
  return { lines, error };
}

test('a key that no longer works hides only the refunds of its own merchant', async () => {
  const { lines, error } = await listed();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ refund_id: 'att_2', amount: '10.00 EUR' }]);
  expect(`${error}`).toContain('The refused payments of app_live_1 could not be read: unanswered: api_key_expired.');
});

test('a payment that the checkout refunds again, because its dispute was won, is not for a person', async () => {
  expect((await listed({ status: 'WON' })).lines).toEqual([]);
});
