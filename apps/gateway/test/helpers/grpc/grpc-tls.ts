import { type Authority, createAuthority } from '../certificates.ts';

interface GrpcTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** The certificate of this test file's gRPC ports, and the authority that its clients trust. Unset without TLS. */
export let grpcTls: GrpcTls | undefined;

/** Enables TLS for all gRPC ports and clients that this test file creates from now on. Returns the authority. */
export function useGrpcTls(): Authority {
  const authority = createAuthority();
  const { cert, key } = authority.issue('server');
  grpcTls = { cert: String(cert), key: String(key), ca: String(authority.ca) };
  return authority;
}
