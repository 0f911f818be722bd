import { failed, success } from '@gateway/domain/result';
import { expect, test } from 'vitest';
import { credentials, fixedDeps } from '../test/fixed-deps.ts';
import { createMemoryLogger } from '../test/memory-logger.ts';
import { credentialHeaders } from '../test/send-order.ts';
import { Call } from './call.ts';
import { nobody } from './connection-limit.ts';
import { fairTimeoutMs } from './limits.ts';

test('a call does not begin before its turn, even where a timer fires a little early', async () => {
  const turnThatNeverComes = { begin: () => new Promise<void>(() => {}), leave() {} };
  const deps = { ...fixedDeps(createMemoryLogger().logger), admission: { enter: () => turnThatNeverComes } };
  const runs = Array.from({ length: 20 }, async (_, index) => {
    const call = new Call(deps, 'grpc', credentialHeaders(credentials), nobody);
    call.limitTimeout(20 + index / 20);
    expect(await call.authenticate('merchant')).toMatchObject({ ok: true });
    return call.run(async () => success('begun'));
  });
  for (const result of await Promise.all(runs)) {
    expect(result).toEqual({ ok: false, failure: { kind: 'deadline_exceeded' } });
  }
});

test.each([
  [fairTimeoutMs - 1, Buffer.alloc(0), 'client_timeout', 30],
  [fairTimeoutMs, Buffer.alloc(0), 'deadline_exceeded', 50],
  [undefined, Buffer.alloc(0), 'deadline_exceeded', 50],
  [undefined, 'deadline_exceeded', 'client_timeout', 30],
] as const)(
  'a deadline of %s ms that passes with the body %j is logged as %s',
  async (timeoutMs, body, code, level) => {
    const { logger, calls } = createMemoryLogger();
    const call = new Call(fixedDeps(logger), 'grpc', {}, nobody);
    call.limitTimeout(timeoutMs);
    call.messageCame(body);
    await call.run(async () => failed({ kind: 'deadline_exceeded' }));
    call.end({ isAnswered: true, status: 200 });
    expect(calls).toMatchObject([{ code, level, grpc_status: 'DEADLINE_EXCEEDED' }]);
  },
);
