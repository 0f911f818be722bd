import { type Authority, createAuthority } from '../certificates.ts';

/** The certificate of the gRPC ports that a test file starts from now on, and what their clients trust. */
export interface GrpcTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** If absent, they do not use TLS. */
export let grpcTls: GrpcTls | undefined;

/** Makes the gRPC ports and clients of this test file use TLS from now on. */
export function useGrpcTls(): Authority {
  const authority = createAuthority();
  const { cert, key } = authority.issue('server');
  grpcTls = { cert: String(cert), key: String(key), ca: String(authority.ca) };
  return authority;
}
