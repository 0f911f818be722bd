import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { readText, temporaryFolder } from './test-resources.ts';

const deployFolder = join(import.meta.dirname, '../deploy');

export const proxies = ['haproxy', 'nginx'] as const;

export type ProxyProgram = (typeof proxies)[number];

/** The ports of a proxy and of the two gateways behind it, and how the test changes the file of the proxy. */
interface ProxyPorts {
  readonly http: number;
  readonly grpc: number;
  /** PEM files. If absent, both ports speak plain HTTP. HAProxy reads the certificate and the key from one file. */
  readonly tls?: Readonly<Record<'certFile' | 'keyFile' | 'bothFile', string>>;
  readonly gateways: readonly [GatewayPorts, GatewayPorts];
  /** Other texts of the file, which a test replaces. */
  readonly replaced?: readonly Replacement[];
}

type GatewayPorts = Readonly<Record<'http' | 'grpc', number>>;

export type Replacement = readonly [text: string, by: string];

/** Runs a proxy with its file from deploy/, but with the test's addresses and certificate, until the test ends. */
export async function runProxy(
  program: ProxyProgram,
  { gateways: [first, second], replaced: testReplacements = [], ...ports }: ProxyPorts,
): Promise<void> {
  const file = { haproxy: 'haproxy.cfg', nginx: 'nginx.conf' }[program];
  let text = await readFile(join(deployFolder, file), 'utf8');
  const replaced = [
    ['10.0.0.11:8080', `127.0.0.1:${first.http}`],
    ['10.0.0.12:8080', `127.0.0.1:${second.http}`],
    ['10.0.0.11:9090', `127.0.0.1:${first.grpc}`],
    ['10.0.0.12:9090', `127.0.0.1:${second.grpc}`],
    ...(program === 'haproxy' ? bindOfHaproxy(ports) : listenOfNginx(ports)),
    ...testReplacements,
  ] as const;
  for (const [from, to] of replaced) {
    expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  const folder = await temporaryFolder();
  const path = join(folder, file);
  await writeFile(path, text);
  const args = program === 'haproxy' ? ['-db', '-f', path] : ['-p', folder, '-c', path, '-g', 'daemon off;'];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const output = readText(child.stderr);
  const exited = once(child, 'exit');
  let isStopping = false;
  exited.then(([code]) => isStopping || process.stderr.write(`${program} ended with ${code}: ${output()}\n`));
  onTestFinished(async () => {
    isStopping = true;
    child.kill('SIGTERM');
    await exited;
  });
}

function bindOfHaproxy({ http, grpc, tls }: Omit<ProxyPorts, 'gateways'>): Replacement[] {
  const certificate = '/etc/haproxy/pay.example.com.pem';
  if (tls !== undefined) {
    return [
      ['bind :443', `bind 127.0.0.1:${http}`],
      ['bind :9443', `bind 127.0.0.1:${grpc}`],
      [certificate, tls.bothFile],
    ];
  }
  return [
    [`:443 ssl crt ${certificate} alpn h2,http/1.1 ssl-min-ver TLSv1.2`, `127.0.0.1:${http}`],
    [`:9443 ssl crt ${certificate} alpn h2 ssl-min-ver TLSv1.2`, `127.0.0.1:${grpc} proto h2`],
  ];
}

function listenOfNginx({ http, grpc, tls }: Omit<ProxyPorts, 'gateways'>): Replacement[] {
  const pid = ['/run/nginx.pid', 'nginx.pid'] as const;
  if (tls !== undefined) {
    return [
      pid,
      ['listen 443', `listen 127.0.0.1:${http}`],
      ['listen 9443', `listen 127.0.0.1:${grpc}`],
      ['/etc/nginx/pay.example.com.pem', tls.certFile],
      ['/etc/nginx/pay.example.com.key', tls.keyFile],
    ];
  }
  return [
    pid,
    ['listen 443 ssl http2', `listen 127.0.0.1:${http}`],
    ['listen 9443 ssl http2', `listen 127.0.0.1:${grpc} http2`],
    ['ssl_certificate /etc/nginx/pay.example.com.pem;', ''],
    ['ssl_certificate_key /etc/nginx/pay.example.com.key;', ''],
  ];
}
