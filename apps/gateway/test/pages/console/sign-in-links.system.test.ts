import { afterEach, expect, test } from 'vitest';
import { program as merchant } from '../../../src/cli/merchant.ts';
import { program as operator } from '../../../src/cli/operator-console.ts';
import { createOperatorLink } from '../../../src/pages/console/operator/operator-access.ts';
import { cookieOf, request } from '../../helpers/console-visitor.ts';
import { endProcesses, runProgram, startOnNewDatabase } from '../../helpers/gateway-process.ts';
import { runCommand } from '../../helpers/run-command.ts';
import { runGateway, testSecretsKey, testSecretsKeyText, useGateway } from '../../helpers/running-gateway.ts';

// A command that prints a sign-in link, and a gateway with workers, are programs.
const gateway = useGateway({ hasConsole: true, baseUrl: 'https://pay.example.com/shop', hasOperatorView: true });
afterEach(endProcesses);

test('operator console prints a link: GET shows a button and does not use the link, and POST signs in once', async () => {
  const operatorView = `http://localhost:${gateway.adminPort}/operator`;
  const variables = {
    DATABASE_URL: gateway.databaseUrl,
    SECRETS_KEY: testSecretsKeyText,
    ADMIN_PORT: `${gateway.adminPort}`,
  };
  const { stdout } = await runProgram('src/cli/operator-console.ts', ['console', '--json'], variables);
  const { url, expires_in_seconds } = JSON.parse(stdout);
  expect([new URL(url).origin, expires_in_seconds]).toEqual([`http://localhost:${gateway.adminPort}`, 900]);
  for (const _preview of [1, 2]) expect((await request(url)).text).toContain('<form method="post">');
  const signedIn = await request(url, { form: {} });
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/operator']);
  const headers = { cookie: cookieOf(signedIn) };
  expect((await request(operatorView, { headers })).status).toBe(200);
  const secondUse = await request(url, { form: {} });
  expect([secondUse.status, cookieOf(secondUse)]).toEqual([410, '']);
  expect((await request(operatorView, { headers, form: {} })).status).toBe(303);
  expect((await request(operatorView, { headers })).status).toBe(401);
});

test('operator console fails if the gateway does not serve the view', async () => {
  const { adminPort, databaseUrl } = await runGateway();
  const variables = { DATABASE_URL: databaseUrl, SECRETS_KEY: testSecretsKeyText, ADMIN_PORT: `${adminPort}` };
  const { code, stdout, stderr } = await runCommand(operator, ['console'], variables);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain("The operators' view is off. Start the gateway with OPERATOR_CONSOLE=on.");
});

test('a gateway with two workers shows the readiness of each, and logs the sign-in', async () => {
  const variables = { OPERATOR_CONSOLE: 'on', SECRETS_KEY: testSecretsKeyText, WORKERS: '2' };
  const { lines, metricsUrl } = await startOnNewDatabase(variables);
  const link = createOperatorLink([testSecretsKey], Number(new URL(metricsUrl).port));
  const headers = { cookie: cookieOf(await request(link, { form: {} })) };
  const readText = async () => (await request(new URL('/operator', link).href, { headers })).text;
  // A worker of a busy machine can be late with its report.
  await expect.poll(async () => (await readText()).match(/>Ready</g)).toHaveLength(2);
  for (const worker of ['Worker 1', 'Worker 2']) expect(await readText()).toContain(`<dt>${worker}</dt>`);
  await expect.poll(() => lines.filter((line) => line.includes('operator signed in'))).toHaveLength(1);
});

test('merchant console prints a sign-in link, and rejects disabled and unknown merchants', async () => {
  const { clientId } = gateway.credentials;
  const environment = { DATABASE_URL: gateway.databaseUrl, BASE_URL: gateway.baseUrl };
  const run = (...args: string[]) => runCommand(merchant, ['console', ...args], environment);
  const printed = await run(clientId, '--name', 'Ada', '--role', 'read', '--json');
  const { url, ...details } = JSON.parse(printed.stdout);
  expect(details).toEqual({ name: 'Ada', role: 'read', expires_in_seconds: 900 });
  const signedIn = await request(url.replace(gateway.baseUrl, gateway.url), { form: {} });
  expect(signedIn.status).toBe(303);
  expect((await run(clientId)).stdout).toContain('https://pay.example.com/shop/console/sign-in/');
  const disabled = await gateway.newMerchant();
  await gateway.accounts.disable(disabled.credentials.clientId);
  for (const id of [disabled.credentials.clientId, 'app_000000000000000000000000']) {
    const { code, stderr } = await run(id);
    expect([code, stderr]).toEqual([1, expect.stringContaining('is not an enabled merchant.')]);
  }
});
