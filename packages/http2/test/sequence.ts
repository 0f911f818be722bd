import { flags, frame, frameTypes, settingsFrame } from '../src/frames.ts';
import { encodeHeaders } from '../src/header-encoder.ts';
import { headersFrame } from './raw-client.ts';

/** A sequence of frames on a connection of its own, and what comes of it. */
export interface Sequence {
  readonly name: string;
  readonly sent: readonly Uint8Array[];
  readonly verdict: string | { readonly ours: string; readonly nghttp2: string; readonly because: string };
}

export const get: readonly string[] = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'localhost'];
export const post: readonly string[] = [':method', 'POST', ...get.slice(2)];
export const held: readonly string[] = post.map((text) => (text === '/' ? '/held' : text));

/** Headers that do not end the request. */
export function opening(streamId: number, fields: readonly string[] = post): Buffer {
  return headersFrame(streamId, fields, flags.endHeaders);
}

export function bytes(...values: readonly number[]): Uint8Array {
  return Uint8Array.from(values);
}

export function uint32(value: number): Buffer {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(value);
  return four;
}

export const windowUpdate = (streamId: number, by: number) => frame(frameTypes.windowUpdate, 0, streamId, uint32(by));
export const reset = (streamId: number) => frame(frameTypes.resetStream, 0, streamId, uint32(8));
export const ping = (set = 0, payload: Uint8Array = Buffer.from('pingpong'), streamId = 0) =>
  frame(frameTypes.ping, set, streamId, payload);
export const priority = (streamId: number, length = 5, on = 0) =>
  frame(
    frameTypes.priority,
    0,
    streamId,
    Buffer.concat([uint32(on), bytes(15), Buffer.alloc(length)]).subarray(0, length),
  );
export const setting = (id: number, value: number) => settingsFrame([[id, value]]);
export const block = encodeHeaders(get);
export const cut = Math.floor(block.length / 2);
export const end = flags.endStream;
export const whole = end | flags.endHeaders;
export const full = Buffer.alloc(16_384);

export function row(verdict: Sequence['verdict'], name: string, sent: readonly Uint8Array[]): Sequence {
  return { name, sent, verdict };
}

/** Where ours leaves the other on purpose. */
export function differs(ours: string, nghttp2: string, because: string): Sequence['verdict'] {
  return { ours, nghttp2, because };
}
