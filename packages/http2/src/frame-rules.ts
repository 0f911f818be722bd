import type { Frame } from './frame-reader.ts';
import { ConnectionFault, errorCodes, flags, frameTypes } from './frames.ts';

interface FrameRule {
  /** Whether it belongs to a stream or to the connection. Undefined: to either. */
  readonly isOfStream?: boolean;
  /** The only length that it can have. */
  readonly length?: number;
  /** The least that it can have. */
  readonly lengthMin?: number;
}

/** RFC 9113, 6.1 to 6.10. Other types mean nothing, and have no form (4.1). */
const rules: ReadonlyMap<number, FrameRule> = new Map([
  [frameTypes.data, { isOfStream: true }],
  [frameTypes.headers, { isOfStream: true }],
  [frameTypes.priority, { isOfStream: true, length: 5 }],
  [frameTypes.resetStream, { isOfStream: true, length: 4 }],
  [frameTypes.settings, { isOfStream: false }],
  [frameTypes.ping, { isOfStream: false, length: 8 }],
  [frameTypes.goAway, { isOfStream: false, lengthMin: 8 }],
  [frameTypes.windowUpdate, { length: 4 }],
  [frameTypes.continuation, { isOfStream: true }],
]);

/** Throws at a frame that can't stand where it stands, or can't be as long as it is. */
export function checkForm({ type, streamId, payload }: Frame): void {
  const rule = rules.get(type);
  const isMisplaced = rule?.isOfStream !== undefined && rule.isOfStream !== streamId > 0;
  // A client's streams have odd numbers (RFC 9113, 5.1.1). As we begin none, the even ones stay idle, where only priorities may come.
  const isOfOurs = streamId > 0 && streamId % 2 === 0 && rule !== undefined && type !== frameTypes.priority;
  if (isMisplaced || isOfOurs) {
    throw new ConnectionFault(errorCodes.protocolError, `a frame of type ${type} on stream ${streamId}`);
  }
  if (payload.length !== (rule?.length ?? payload.length) || payload.length < (rule?.lengthMin ?? 0)) {
    throw new ConnectionFault(errorCodes.frameSizeError, `a frame of type ${type} with ${payload.length} bytes`);
  }
}

/** The payload without what only hides its length (RFC 9113, 6.1 and 6.2). */
export function withoutPadding({ flags: set, payload }: Frame): Buffer {
  if ((set & flags.padded) === 0) return payload;
  const [length = 0] = payload;
  if (length >= payload.length) throw new ConnectionFault(errorCodes.protocolError, 'more padding than bytes');
  return payload.subarray(1, payload.length - length);
}
