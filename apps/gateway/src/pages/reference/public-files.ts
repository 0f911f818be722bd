import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';

/** Shorter files fit into one or two packets uncompressed. */
const compressedFromBytes = 1_024;

/**
 * Returns a handler that serves a file that is the same for everyone, compressed if it is long and the client accepts
 * gzip. The first request creates the file. Other responses are never compressed: they contain secrets next to text
 * that an attacker can choose, so their compressed length would reveal the secrets (BREACH, CVE-2013-3587).
 */
export function publicFile(
  headers: Readonly<Record<string, string>>,
  create: () => string | Promise<string | Buffer>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  let file: { readonly plain: Buffer; readonly compressed: Buffer | undefined } | undefined;
  return async (request, reply) => {
    if (file === undefined) {
      const plain = Buffer.from(await create());
      file = { plain, compressed: plain.length > compressedFromBytes ? await promisify(gzip)(plain) : undefined };
    }
    const { plain, compressed } = file;
    request.call.succeed('ok');
    reply.headers(headers);
    if (compressed === undefined) return reply.send(plain);
    reply.header('vary', 'Accept-Encoding');
    const acceptsGzip = new Negotiator(request.raw).encodings(['gzip']).length > 0;
    return acceptsGzip ? reply.header('content-encoding', 'gzip').send(compressed) : reply.send(plain);
  };
}
