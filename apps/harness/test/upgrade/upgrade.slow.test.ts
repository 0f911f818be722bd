import { missingCitus, startCitusCluster } from '@order-gateway/dev-postgres/testing/citus';
import { distribute } from '@order-gateway/postgres/testing/distributed-database';
import { expect, test } from 'vitest';
import { proxies } from '../../../../tools/proxies.ts';
import { missing, mustSkip } from '../../../../tools/skip-if-missing.ts';
import { checkOut, findRelease } from './released-tree.ts';
import { runUpgrade } from './run-upgrade.ts';

const upgrades = Number(process.env.UPGRADES ?? 4);
const rate = Number(process.env.UPGRADE_RATE ?? 300);

test.for(proxies.filter((proxy) => !mustSkip(`upgrades behind ${proxy}`, missing(proxy))))(
  'no call fails and no order is lost in upgrades and rollbacks behind %s',
  async (proxy, { skip }) => {
    const revision = findRelease();
    expect(revision, 'no release 1.0.0 in the history: set UPGRADE_FROM to a revision').toBeDefined();
    const previous = await checkOut(revision ?? '');
    skip(mustSkip('an upgrade', await runUpgrade({ proxy, previous, upgrades, rate, pendingMax: 64 })));
  },
);

test.skipIf(mustSkip('upgrades on Citus', missing('haproxy') ?? missingCitus()))(
  'no call fails and no order is lost in upgrades and rollbacks on Citus',
  async ({ skip }) => {
    const revision = findRelease();
    expect(revision, 'no release 1.0.0 in the history: set UPGRADE_FROM to a revision').toBeDefined();
    const startDatabase = async () => {
      const { url, close } = await startCitusCluster();
      return { url, stop: close, distribute: () => distribute(url) };
    };
    // Three servers share the machine.
    const plan = { upgrades: Math.min(upgrades, 2), rate: Math.min(rate, 50), pendingMax: 64 };
    const previous = await checkOut(revision ?? '');
    skip(mustSkip('an upgrade on Citus', await runUpgrade({ ...plan, proxy: 'haproxy', previous, startDatabase })));
  },
);
