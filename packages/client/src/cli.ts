#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { createClient } from './calls/client.ts';
import { listen, replay } from './listen.ts';
import { secretBytes } from './signatures/signatures.ts';
import type { EventType } from './types.ts';
import { version } from './version.ts';

// Only this file needs Node.js. The other files use web APIs that other runtimes also have.

const usage = `Usage: order-gateway-client listen --forward-to URL [options]

Reads the merchant's events and posts each one to URL, signed like a webhook.

Options:
  --forward-to URL   where to post the events, such as http://localhost:3000
  --types LIST       only these types, such as order.paid,order.expired
  --replay EVENT_ID  post this event once, and exit
  -h, --help         show this help
  -V, --version      show the version

Environment: CLIENT_ID, CLIENT_SECRET, BASE_URL, and optionally SIGNING_SECRET
(whsec_...), without which a new secret is generated and printed.
Exit codes: 0 success; 1 failure, or --replay did not deliver the event; 2 an
argument or a variable is invalid.`;

function randomSecret(): string {
  return `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`;
}

/**
 * Returns the help or the version if the arguments request it, and otherwise the options of `listen` or `replay`.
 * Throws a TypeError if an argument or variable is invalid.
 */
function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'forward-to': { type: 'string' },
      types: { type: 'string' },
      replay: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'V' },
    },
  });
  if (values.help) return usage;
  if (values.version) return version;
  const { 'forward-to': forwardTo = '', types, replay } = values;
  if (positionals.join() !== 'listen') throw new TypeError('The only command is listen');
  const { BASE_URL = '', CLIENT_ID = '', CLIENT_SECRET = '', SIGNING_SECRET = '' } = process.env;
  for (const [name, url] of Object.entries({ '--forward-to': forwardTo, BASE_URL })) {
    if (!/^https?:\/\//i.test(url)) throw new TypeError(`${name} must be an http or https URL`);
  }
  for (const [name, value] of Object.entries({ CLIENT_ID, CLIENT_SECRET })) {
    if (value === '') throw new TypeError(`${name} is not set`);
  }
  const client = createClient({ baseUrl: BASE_URL, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET });
  const secret = SIGNING_SECRET || randomSecret();
  secretBytes(secret);
  // Not validated here: the gateway rejects unknown types and lists the valid ones.
  const eventTypes = types?.split(',') as EventType[] | undefined;
  return { client, forwardTo, types: eventTypes, eventId: replay, secret, isNew: secret !== SIGNING_SECRET };
}

async function main(): Promise<void> {
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  process.stdout.on('error', ({ message }) => {
    process.stderr.write(`${message}\n`);
    process.exit(1);
  });
  let options: ReturnType<typeof readArguments>;
  try {
    options = readArguments();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}\n`);
    process.exitCode = 2;
    return;
  }
  if (typeof options === 'string') return print(options);
  const { eventId, isNew, ...listenOptions } = options;
  if (isNew) print(`Signing secret: ${listenOptions.secret}`);
  try {
    await (eventId === undefined ? listen({ ...listenOptions, print }) : replay(eventId, { ...listenOptions, print }));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}

void main();
