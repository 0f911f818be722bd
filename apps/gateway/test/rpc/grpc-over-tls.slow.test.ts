import { afterAll, expect, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { noCertificates } from '../helpers/certificates.ts';
import { grpcTls, useGrpcTls } from '../helpers/grpc/grpc-tls.ts';

// Runs these tests of the gRPC port over TLS.

if (!mustSkip('the gRPC port over TLS', noCertificates)) {
  const authority = useGrpcTls();
  afterAll(authority.remove);
  await import('./grpc-connections.test.ts');
  await import('./grpc-transport.test.ts');
  await import('./grpc-health.test.ts');
  await import('./http2-attacks.system.test.ts');
  await import('./http2-bounds.test.ts');
}

test('the tests of this file use TLS if this machine can create certificates', () => {
  expect(grpcTls === undefined).toBe(noCertificates !== undefined);
});
