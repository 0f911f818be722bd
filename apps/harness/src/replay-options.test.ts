import { fixturesFolder } from '@gateway/fixtures/load-fixtures';
import { expect, test } from 'vitest';
import { readReplayOptions } from './replay-options.ts';

const credentials = { CLIENT_ID: 'app_1', CLIENT_SECRET: 'sk_1' };

test('without arguments all fixtures are replayed at a gateway of our own', () => {
  expect(readReplayOptions([], credentials)).toEqual({ gateway: undefined, fixturesFolder, only: '' });
});

test('a given gateway is taken with credentials from the environment', () => {
  const args = ['--http', 'http://localhost:8080/pay/', '--grpc', 'localhost:9090', '--only', 'amount'];
  const env = { ...credentials, STRICT_CLIENT_ID: 'app_3', STRICT_CLIENT_SECRET: 'sk_3', SECOND_CLIENT_ID: 'alone' };
  expect(readReplayOptions(args, env)).toMatchObject({
    only: 'amount',
    gateway: {
      httpUrl: 'http://localhost:8080/pay',
      grpcAddress: 'localhost:9090',
      merchants: {
        first: { clientId: 'app_1', clientSecret: 'sk_1' },
        strict: { clientId: 'app_3', clientSecret: 'sk_3' },
      },
    },
  });
});

test.for([
  ['--grpc', ['--http', 'http://localhost'], credentials],
  ['--http must be', ['--http', 'localhost', '--grpc', 'localhost:1'], credentials],
  ['--grpc must be', ['--http', 'http://localhost', '--grpc', 'http://localhost'], credentials],
  ['CLIENT_SECRET', ['--http', 'http://localhost', '--grpc', 'localhost:1'], { CLIENT_ID: 'app_1' }],
  ['--only and --fixtures choose fixtures', ['--only', 'amount', 'traffic.ndjson'], {}],
  ['--client-secret', ['--client-secret', 'sk_1'], credentials],
] as const)('%s is asked for when it is needed', ([told, args, env]) => {
  expect(() => readReplayOptions(args, env)).toThrow(told);
});
