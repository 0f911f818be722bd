import { success } from '@gateway/domain/result';
import { expect, test } from 'vitest';
import { credentials, fixedDeps } from '../test/fixed-deps.ts';
import { createMemoryLogger } from '../test/memory-logger.ts';
import { credentialHeaders } from '../test/send-order.ts';
import { Call } from './call.ts';

test('a call does not begin before its turn, even where a timer fires a little early', async () => {
  const turnThatNeverComes = { begin: () => new Promise<void>(() => {}), leave() {} };
  const deps = { ...fixedDeps(createMemoryLogger().logger), admission: { enter: () => turnThatNeverComes } };
  const runs = Array.from({ length: 20 }, async (_, index) => {
    const call = new Call(deps, 'grpc', credentialHeaders(credentials), { address: undefined, known() {}, waits() {} });
    call.limitTimeout(20 + index / 20);
    expect(await call.authenticate('merchant')).toMatchObject({ ok: true });
    return call.run(async () => success('begun'));
  });
  for (const result of await Promise.all(runs)) {
    expect(result).toEqual({ ok: false, failure: { kind: 'deadline_exceeded' } });
  }
});
