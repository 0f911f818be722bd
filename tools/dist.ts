import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { licenceTexts, reproducibleSbom } from './dist-files.ts';
import { pnpm } from './pnpm.ts';
import { findProgram } from './skip-if-missing.ts';

// Builds the artifacts of a release in dist/ (docs/releasing.md): the image and the sources from the commit HEAD, and
// the packages and the files that describe the artifacts from the working tree. BASE_IMAGE replaces the base image, for
// example with the one of .ci/base-image.

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
const { name, version } = manifest;

/** Runs a program and returns its standard output. Its errors appear on the terminal. */
function run(program: string, args: readonly string[], cwd = root): Buffer {
  const { status, error, stdout } = spawnSync(program, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1e9,
  });
  if (error !== undefined) throw error;
  if (status === 0) return stdout;
  throw new Error(`${program} ${args.join(' ')} failed with exit code ${status}`);
}
const text = (program: string, ...args: string[]) => run(program, args).toString().trim();
const runPnpm = (...args: string[]) => run('sh', ['-c', `${pnpm} "$@"`, 'sh', ...args]).toString();

const commit = text('git', 'rev-parse', 'HEAD');
const committedAt = text('git', 'log', '-1', '--format=%ct');

const [, defaultBaseImage = ''] =
  /^ARG BASE_IMAGE=(.+)$/m.exec(readFileSync(join(root, 'Containerfile'), 'utf8')) ?? [];
const baseImage = process.env.BASE_IMAGE ?? defaultBaseImage;

const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');

/** Archives the commit. Returns a folder with the extracted files, as users get them. */
function exportSources(): string {
  const folder = mkdtempSync(join(tmpdir(), 'order-gateway-dist-'));
  const archive = join(dist, `${name}-${version}.tar.gz`);
  run('git', ['archive', `--prefix=${name}-${version}/`, '--output', archive, commit]);
  run('tar', ['--extract', '--gzip', '--file', archive, '--directory', folder]);
  return join(folder, `${name}-${version}`);
}

/**
 * Builds the image as an OCI layout in a tar file. All timestamps are the time of the commit, so that two builds are
 * identical.
 */
function buildImage(sources: string): void {
  if (findProgram('buildah') === undefined) {
    process.stderr.write('SKIPPED: the image: buildah is not installed\n');
    return;
  }
  const certificates = process.env.NODE_EXTRA_CA_CERTS;
  const secret = certificates === undefined ? [] : ['--secret', `id=ca,src=${certificates}`];
  const tag = `${name}:${version}`;
  const build = ['build', '--timestamp', committedAt, '--build-arg', `VERSION=${version}`, '--tag', tag];
  run('buildah', [...build, '--build-arg', `BASE_IMAGE=${baseImage}`, ...secret, sources]);
  run('buildah', ['push', tag, `oci-archive:${join(dist, `${name}-${version}.oci.tar`)}:${tag}`]);
}

/** Writes the licences of all packages in the image, with their texts. */
function writeLicences(): void {
  const byLicence = JSON.parse(runPnpm('--filter', 'gateway...', 'licenses', 'list', '--prod', '--json'));
  writeFileSync(join(dist, 'THIRD-PARTY-LICENCES.txt'), licenceTexts(byLicence));
}

/**
 * Writes which sources the artifacts were built from, as an in-toto statement with SLSA's predicate. The statement is
 * not signed, because the workflow of a release signs the artifacts.
 */
function writeProvenance(): void {
  const files = readdirSync(dist).toSorted();
  const lockFile = digest(join(root, 'pnpm-lock.yaml'));
  const [, baseImageDigest] = /@sha256:([\da-f]{64})$/.exec(baseImage) ?? [];
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map((file) => ({ name: file, digest: { sha256: digest(join(dist, file)) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `https://github.com/in-toto/attestation/tree/main/spec/predicates#${name}-dist`,
        externalParameters: { revision: commit },
        internalParameters: { node: process.versions.node, packageManager: manifest.packageManager },
        resolvedDependencies: [
          { name: 'sources', digest: { gitCommit: commit } },
          { name: 'pnpm-lock.yaml', digest: { sha256: lockFile } },
          {
            name: 'base image',
            uri: baseImage,
            ...(baseImageDigest !== undefined && { digest: { sha256: baseImageDigest } }),
          },
        ],
      },
      runDetails: { builder: { id: process.env.GITHUB_WORKFLOW_REF ?? 'a local build' } },
    },
  };
  writeFileSync(join(dist, `${name}-${version}.intoto.jsonl`), `${JSON.stringify(statement)}\n`);
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
const sources = exportSources();
try {
  buildImage(sources);
} catch (error) {
  // For example, if the base image can't be pulled. The other artifacts don't need it.
  process.stderr.write(`FAILED: the image: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
} finally {
  rmSync(join(sources, '..'), { recursive: true });
}
// npm packs the client, because pnpm needs a version of every workspace package that a packed package depends on. pnpm
// packs the contract, because npm does not apply publishConfig.exports.
run('npm', ['pack', '--pack-destination', dist], join(root, 'packages/client'));
runPnpm('--filter', '@order-gateway/contract', 'pack', '--pack-destination', dist);
const kit = mkdtempSync(join(tmpdir(), 'order-gateway-conformance-'));
run(process.execPath, [join(root, 'apps/harness/conformance/build-conformance.ts'), kit]);
run('npm', ['pack', '--pack-destination', dist], kit);
rmSync(kit, { recursive: true });
for (const folder of globSync('packages/{client,contract}/dist', { cwd: root })) rmSync(folder, { recursive: true });
const sbom = join(dist, `${name}-${version}.cdx.json`);
runPnpm(
  '--filter',
  'gateway',
  'sbom',
  '--prod',
  '--sbom-format',
  'cyclonedx',
  '--sbom-type',
  'application',
  '--out',
  sbom,
);
writeFileSync(sbom, reproducibleSbom(readFileSync(sbom, 'utf8'), Number(committedAt)));
writeLicences();
writeProvenance();
const sums = readdirSync(dist)
  .toSorted()
  .map((file) => `${digest(join(dist, file))}  ${file}\n`);
writeFileSync(join(dist, 'SHA256SUMS'), sums.join(''));
process.stdout.write(sums.join(''));
if (text('git', 'status', '--porcelain') !== '')
  process.stderr.write('Uncommitted changes are in the packages, but not in the image and the sources.\n');
