import { type Authority, createAuthority } from '../certificates.ts';

interface GrpcTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** The certificate of this test file's gRPC ports, and the authority that its clients trust. Absent without TLS. */
export let grpcTls: GrpcTls | undefined;

/** Makes the gRPC ports and clients of this test file use TLS from now on. */
export function useGrpcTls(): Authority {
  const authority = createAuthority();
  const { cert, key } = authority.issue('server');
  grpcTls = { cert: String(cert), key: String(key), ca: String(authority.ca) };
  return authority;
}
