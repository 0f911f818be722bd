import { expect, test } from 'vitest';
import { fixedDeps } from '../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import { fairTimeoutMs } from '../limits.ts';
import { Call } from './call.ts';
import { noPeer } from './peers/connection-limit.ts';

test.each([
  [fairTimeoutMs - 1, Buffer.alloc(0), 'client_timeout', 'info'],
  [fairTimeoutMs, Buffer.alloc(0), 'deadline_exceeded', 'error'],
  [undefined, Buffer.alloc(0), 'deadline_exceeded', 'error'],
  [undefined, 'deadline_exceeded', 'client_timeout', 'info'],
] as const)(
  'with a client timeout of %s ms and the body %j, a missed deadline is logged as %s',
  async (timeoutMs, body, code, level) => {
    const { logger, calls } = createMemoryLogger();
    const call = new Call(fixedDeps(logger), 'grpc', {}, noPeer);
    call.limitTimeout(timeoutMs);
    call.bodyReceived(body);
    call.fail({ kind: 'deadline_exceeded' });
    call.end({ isAnswered: true, status: 200 });
    expect(calls).toMatchObject([{ code, level, grpc_status: 'DEADLINE_EXCEEDED' }]);
  },
);
