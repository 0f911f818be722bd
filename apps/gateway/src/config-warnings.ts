import { isLoopbackUrl } from '@order-gateway/runtime/ip-address';
import ipaddr from 'ipaddr.js';
import type { Config } from './config.ts';

/** The configuration of a gateway that has opened its ports. */
interface OpenedConfig extends Pick<Config, 'tls' | 'trustProxy' | 'console'> {
  /** The address to which the ports are bound. */
  readonly host: string;
  readonly baseUrl: string;
  readonly secretsKeys: unknown;
}

/** Returns the log lines about settings that an operator should change: each with its fields and its message. */
export function configWarnings(config: OpenedConfig): readonly (readonly [fields: object, message: string])[] {
  const { host, baseUrl } = config;
  const publicUrl = new URL(baseUrl);
  const sendsInClear = config.tls === undefined && config.trustProxy === undefined;
  const warnings: [object, string, boolean][] = [
    [{}, 'SECRETS_KEY is not set: no webhooks are sent, and returns are not signed', config.secretsKeys === undefined],
    [
      { host },
      'credentials are sent without TLS: set TLS_CERT_FILE, or TRUST_PROXY behind a proxy',
      sendsInClear && ipaddr.process(host).range() !== 'loopback',
    ],
    [
      { baseUrl },
      "merchants can't sign in to the console without TLS: set BASE_URL to an https address, or CONSOLE=off",
      config.console && publicUrl.protocol === 'http:' && !isLoopbackUrl(publicUrl),
    ],
  ];
  return warnings.flatMap(([fields, message, applies]) => (applies ? [[fields, message] as const] : []));
}
