import { contentTypeUnaryRegExp } from '@connectrpc/connect/protocol-connect';
import { messageBytesMax } from '../limits.ts';
import { HeldBytes } from './held-bytes.ts';
import { envelopeHeadBytes } from './lane-envelopes.ts';

/**
 * The same bytes in pieces that begin and end with messages. Connect makes room for a message as soon as its head announces it, so
 * that five bytes on each of many calls would hold 64 KiB each, and takes a time that grows with the square of the number of
 * pieces. What it refuses is not held back: a message over the limit is given at once, one that is cut when the body ends.
 */
export async function* inWholeMessages(
  body: AsyncIterable<Uint8Array>,
  mediaType: string | undefined,
): AsyncGenerator<Uint8Array, undefined> {
  const endOfWhole = contentTypeUnaryRegExp.test(mediaType ?? '') ? endOfBareMessage : endOfEnvelopes;
  const held = new HeldBytes(envelopeHeadBytes + messageBytesMax);
  for await (const piece of body) {
    held.add(piece);
    const end = endOfWhole(held.bytes());
    if (end > 0) yield held.take(end);
  }
  const rest = held.bytes();
  if (rest.length > 0) yield rest;
}

/** Where the last envelope ends that is all there; with one that is too large, the end of all bytes. */
function endOfEnvelopes(bytes: Buffer): number {
  let end = 0;
  while (end + envelopeHeadBytes <= bytes.length) {
    const length = bytes.readUInt32BE(end + 1);
    if (length > messageBytesMax) return bytes.length;
    if (end + envelopeHeadBytes + length > bytes.length) return end;
    end += envelopeHeadBytes + length;
  }
  return end;
}

/** Unary Connect has no envelopes: the message is all there when the body ends, and until then only found too large. */
function endOfBareMessage(bytes: Buffer): number {
  return bytes.length > messageBytesMax ? bytes.length : 0;
}
