import type { Readable } from 'node:stream';
import { messageBytesMax } from '../limits.ts';

/** One byte of flags and four of length before a message (github.com/grpc/grpc, PROTOCOL-HTTP2, Length-Prefixed-Message). */
export const envelopePrefixBytes = 5;

/** The body of a unary call, or why there is none. */
export type RpcBody = Buffer | 'too_large' | 'deadline_exceeded' | 'aborted';

/** Small chunks are slices of larger read buffers; joined at this count, they no longer keep those alive. */
const chunksMax = 64;

/** Reads the body of a unary call, at most one message of the limit. What comes after that is read and dropped. */
export function readBody(
  stream: Readable,
  { hasEnvelope, timeoutMs }: { readonly hasEnvelope: boolean; readonly timeoutMs: number },
): Promise<RpcBody> {
  const bytesMax = hasEnvelope ? envelopePrefixBytes + messageBytesMax : messageBytesMax;
  return new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let length = 0;
    let isSettled = false;
    const joined = () => (chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    const settle = (body: RpcBody) => {
      clearTimeout(timer);
      isSettled = true;
      chunks = [];
      resolve(body);
    };
    const timer = setTimeout(settle, Math.max(0, timeoutMs), 'deadline_exceeded');
    stream.on('data', (chunk: Buffer) => {
      if (isSettled) return;
      const isStart = length < envelopePrefixBytes;
      chunks.push(chunk);
      length += chunk.length;
      if (chunks.length === chunksMax) chunks = [joined()];
      if (length > bytesMax || (hasEnvelope && isStart && announcedLength(joined()) > messageBytesMax))
        settle('too_large');
    });
    stream.once('end', () => settle(joined()));
    stream.once('error', () => settle('aborted'));
    stream.once('close', () => settle('aborted'));
  });
}

/** The length that an envelope announces; 0 while its prefix is not complete. */
export function announcedLength(bytes: Buffer): number {
  return bytes.length < envelopePrefixBytes ? 0 : bytes.readUInt32BE(1);
}
