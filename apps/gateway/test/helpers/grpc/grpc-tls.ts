import { type Authority, createAuthority } from '../certificates.ts';

/** The certificate of the gRPC ports that a test file starts from now on, and what their clients trust. */
export interface GrpcTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Absent: they speak without TLS. */
export let grpcTls: GrpcTls | undefined;

/** From now on, the gRPC ports and the clients of this test file speak TLS. */
export function useGrpcTls(): Authority {
  const authority = createAuthority();
  const { cert, key } = authority.issue('server');
  grpcTls = { cert: String(cert), key: String(key), ca: String(authority.ca) };
  return authority;
}
