import type { GatewayAddresses } from './gateway-process.ts';

/** Whether the caller of a command wants to read its usage. */
export function asksForHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

/** Lets a command go on when nobody reads what it tells any more, as after `| head -1`: it has a gateway to stop. */
export function outliveReaders(): void {
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
}

/** The gateway that `--http` and `--grpc` name, if any. Throws an Error with a sentence for the caller on what makes no sense. */
export function givenAddresses(http: string | undefined, grpc: string | undefined): GatewayAddresses | undefined {
  if (http === undefined && grpc === undefined) return undefined;
  if (http === undefined || grpc === undefined) throw new Error('--http and --grpc must be given together');
  if (!/^https?:\/\/[^/]/.test(http) || !URL.canParse(http)) throw new Error('--http must be an http or https URL');
  if (!/^[^\s/]+:\d{1,5}$/.test(grpc)) throw new Error('--grpc must be HOST:PORT');
  return { httpUrl: http.replace(/\/+$/, ''), grpcAddress: grpc };
}
