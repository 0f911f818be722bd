import { expect, test } from 'vitest';
import { newDatabase, runProgram } from '../helpers/gateway-process.ts';
import type { FilesOfCalls } from '../helpers/print-files-of-calls.ts';

test('a reader who follows POST /order opens at most 22 files, and CreateOrder over gRPC as many', async () => {
  const { databaseUrl, credentials } = await newDatabase();
  const args = [JSON.stringify(credentials)];
  const program = await runProgram('test/helpers/print-files-of-calls.ts', args, { DATABASE_URL: databaseUrl });
  expect(program).toMatchObject({ code: 0, stderr: '' });
  const { json, grpc }: FilesOfCalls = JSON.parse(program.stdout);
  expect(json.length, json.join('\n')).toBeLessThanOrEqual(22);
  expect(grpc.length, grpc.join('\n')).toBeLessThanOrEqual(22);
});
