import { hash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { type Logo, type LogoType, logoLimits } from '@order-gateway/domain/accounts';
import type { BrokenRule } from '@order-gateway/domain/requests';
import { failed, success } from '@order-gateway/domain/result';
import { settledWithin } from '@order-gateway/runtime/settled-within';
import { imageSize } from 'image-size';
import { retryAfter, storageFailure } from '../../calls/store-failure.ts';
import { logoCheckLimits } from '../../limits.ts';
import type { CheckLogo } from '../service.ts';

const typeOf: Readonly<Record<string, LogoType>> = { png: 'png', jpg: 'jpeg', webp: 'webp' };

const notAnImage: BrokenRule = { code: 'bad_format', message: 'must be a complete PNG, JPEG or WebP image' };
const tooLarge: BrokenRule = { code: 'too_long', message: `must have at most ${logoLimits.bytes} bytes` };
const tooWide: BrokenRule = {
  code: 'out_of_range',
  message: `must be at most ${logoLimits.pixels} pixels wide and high`,
};

const tooManyScans: BrokenRule = {
  code: 'out_of_range',
  message: `must have at most ${logoCheckLimits.scansMax} scans, if it is a JPEG`,
};
const tooMuchWork: BrokenRule = { code: 'out_of_range', message: 'must need less CPU time to decode' };

const invalid = (rule: BrokenRule) =>
  failed({ kind: 'invalid_request', errors: [{ field: 'logo', ...rule }] } as const);

/**
 * Creates the check of a logo's image. The check first reads the format, the size and the number of scans, so that no
 * decompression bomb is unpacked, and then decodes the whole image. The image is stored as it was sent. Only one image
 * is decoded at a time. Further images wait, at most one of each merchant, so that a merchant delays other merchants by
 * at most one decoding.
 */
export function createCheckLogo(limits = logoCheckLimits): CheckLogo {
  /** The client ids of the merchants with an image that is being decoded or waits. */
  const clientIds = new Set<string>();
  let lastDecoding: Promise<unknown> = Promise.resolve();
  return async (clientId, image, timeLeftMs) => {
    if (image.length > logoLimits.bytes) return invalid(tooLarge);
    const header = headerOf(image);
    if (header === undefined) return invalid(notAnImage);
    const { type, width, height } = header;
    if (Math.max(width, height) > logoLimits.pixels) return invalid(tooWide);
    if (type === 'jpeg' && scansOf(image) > limits.scansMax) return invalid(tooManyScans);
    if (clientIds.has(clientId)) return failed({ kind: 'rate_limited', retryAfterMs: retryAfter(limits.cpuMs) });
    if (clientIds.size >= limits.waitingMax) return failed(storageFailure('overloaded'));
    clientIds.add(clientId);
    const decoding = lastDecoding
      .then(() => decode(image, limits.cpuMs, timeLeftMs()))
      .finally(() => clientIds.delete(clientId));
    lastDecoding = decoding.catch(() => {});
    const decoded = await settledWithin(timeLeftMs(), decoding);
    if (decoded === 'deadline_exceeded') return failed({ kind: decoded });
    if (decoded === 'too_much_work') return invalid(tooMuchWork);
    if (decoded?.width !== width || decoded.height !== height) return invalid(notAnImage);
    return success({ type, width, height, digest: hash('sha256', image, 'base64url'), image });
  };
}

/** Returns the format and size in the header of an image; `undefined` if the format is not supported. */
function headerOf(image: Uint8Array): Pick<Logo, 'type' | 'width' | 'height'> | undefined {
  try {
    const { type = '', width, height } = imageSize(image);
    return typeOf[type] && { type: typeOf[type], width, height };
  } catch {
    return undefined;
  }
}

/**
 * Counts the scan markers everywhere in a JPEG, so that no decoder can find more scans. Random metadata contains one by
 * coincidence about every 64 KiB.
 */
function scansOf(image: Uint8Array): number {
  return Buffer.from(image.buffer, image.byteOffset, image.length).toString('latin1').split('\xff\xda').length - 1;
}

type Decoded = Pick<Logo, 'width' | 'height'> | 'deadline_exceeded' | 'too_much_work' | undefined;

/** Decodes an image in a thread and returns its size; `undefined` if the image can't be decoded. */
async function decode(image: Uint8Array, cpuMs: number, timeoutMs: number): Promise<Decoded> {
  if (timeoutMs <= 0) return 'deadline_exceeded';
  // Standard error is captured, because the decoder prints the reason for a trap there.
  const worker = new Worker(new URL('./decode-logo.ts', import.meta.url), { workerData: image, stderr: true });
  const { promise, resolve } = Promise.withResolvers<Decoded>();
  const timer = setTimeout(resolve, timeoutMs, 'deadline_exceeded');
  // Limits CPU time, because the elapsed time also depends on the load of the machine.
  const watch = setInterval(async () => {
    const { user, system } = await worker.cpuUsage().catch(() => ({ user: 0, system: 0 }));
    if (user + system > cpuMs * 1_000) resolve('too_much_work');
  }, cpuMs / 10);
  worker.once('message', resolve);
  worker.once('exit', () => resolve(undefined));
  // Without a listener, the error of the decoder would end the gateway. The thread exits after it.
  worker.once('error', () => {});
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    await worker.terminate();
  }
}
