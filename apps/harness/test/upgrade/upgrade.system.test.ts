import { test } from 'vitest';
import { proxies } from '../../../../tools/proxies.ts';
import { missing, mustSkip } from '../../../../tools/skip-if-missing.ts';
import { checkOut, findRelease } from './released-tree.ts';
import { runUpgrade } from './run-upgrade.ts';

const proxy = proxies.find((program) => missing(program) === undefined);
const revision = findRelease();
const reason =
  proxy === undefined
    ? 'neither HAProxy nor nginx is installed'
    : revision === undefined
      ? 'the history has no release 1.0.0'
      : undefined;

test.skipIf(mustSkip('an upgrade from 1.0.0', reason))(
  'no call fails and no order is lost in an upgrade from 1.0.0, a rollback and a second upgrade under load',
  async ({ skip }) => {
    if (proxy === undefined || revision === undefined) return;
    const previous = await checkOut(revision).catch((error: Error) => error);
    if (previous instanceof Error) {
      mustSkip('an upgrade from 1.0.0', `its dependencies can't be installed: ${previous.message}`);
      return skip();
    }
    const busy = await runUpgrade({ proxy, previous, upgrades: 2, rate: 30, pendingMax: 4 });
    skip(mustSkip('an upgrade from 1.0.0', busy));
  },
  600_000,
);
