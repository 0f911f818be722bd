import { expect, test } from 'vitest';
import { credentials, fixedDeps } from '../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import { credentialHeaders } from '../../test/helpers/send-order.ts';
import { Call } from './call.ts';
import { noPeer } from './peers/connection-limit.ts';
import { createReceive } from './receive.ts';

test('a call does not start without a slot, even if a timer fires a little early', async () => {
  const permit = { start: () => new Promise<void>(() => {}), release() {} };
  const deps = { ...fixedDeps(createMemoryLogger().logger), admission: { acquire: () => permit } };
  const receive = createReceive(deps);
  const headers = credentialHeaders(credentials);
  const calls = Array.from({ length: 20 }, (_, index) =>
    receive(new Call(deps, 'grpc', headers, noPeer), {
      headers,
      timeoutMs: 20 + index / 20,
      bodyBytesMax: 0,
      isMediaTypeSupported: true,
      accountKind: 'merchant',
    }),
  );
  for (const result of await Promise.all(calls)) {
    expect(result).toEqual({ ok: false, failure: { kind: 'deadline_exceeded' } });
  }
});
