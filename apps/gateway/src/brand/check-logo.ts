import { hash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { type Logo, type LogoType, logoLimits } from '@order-gateway/domain/accounts/brand';
import type { Failure } from '@order-gateway/domain/failure';
import type { BrokenRule } from '@order-gateway/domain/fields/field-rules';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { imageSize } from 'image-size';
import { logoCheckLimits } from '../limits.ts';
import { storageFailure } from '../storage-failure.ts';

export type CheckLogo = ReturnType<typeof createCheckLogo>;

const typeOf: Readonly<Record<string, LogoType>> = { png: 'png', jpg: 'jpeg', webp: 'webp' };

const notAnImage: BrokenRule = { code: 'bad_format', message: 'must be a complete PNG, JPEG or WebP image' };
const tooLarge: BrokenRule = { code: 'too_long', message: `must have at most ${logoLimits.bytes} bytes` };
const tooWide: BrokenRule = {
  code: 'out_of_range',
  message: `must be at most ${logoLimits.pixels} pixels wide and high`,
};

const invalid = (rule: BrokenRule) =>
  failed({ kind: 'invalid_request', errors: [{ field: 'logo', ...rule }] } as const);

/**
 * Creates a check of a logo's image: first its format and size in the header, so that no decompression bomb is unpacked,
 * and then by decoding all of it. The image is stored as it was sent.
 */
export function createCheckLogo() {
  let decoding = 0;
  return async (image: Uint8Array): Promise<Result<Logo & { readonly image: Uint8Array }, Failure>> => {
    if (image.length > logoLimits.bytes) return invalid(tooLarge);
    const header = headerOf(image);
    if (header === undefined) return invalid(notAnImage);
    const { type, width, height } = header;
    if (Math.max(width, height) > logoLimits.pixels) return invalid(tooWide);
    if (decoding >= logoCheckLimits.decodingMax) return failed(storageFailure('overloaded'));
    decoding += 1;
    const decoded = await decode(image);
    decoding -= 1;
    if (decoded?.width !== width || decoded.height !== height) return invalid(notAnImage);
    return success({ type, width, height, digest: hash('sha256', image, 'base64url'), image });
  };
}

/** The format and size in the header of an image; `undefined` for another format. */
function headerOf(image: Uint8Array): Pick<Logo, 'type' | 'width' | 'height'> | undefined {
  try {
    const { type = '', width, height } = imageSize(image);
    return typeOf[type] && { type: typeOf[type], width, height };
  } catch {
    return undefined;
  }
}

/** The size of a decoded image; `undefined` if it can't be decoded, or not in time. */
async function decode(image: Uint8Array): Promise<{ readonly width: number; readonly height: number } | undefined> {
  // The decoder reports the reason for a trap.
  const worker = new Worker(new URL('./decode-logo.ts', import.meta.url), { workerData: image, stderr: true });
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<typeof decode>>>();
  const timer = setTimeout(resolve, logoCheckLimits.timeoutMs, undefined);
  worker.once('message', resolve);
  worker.once('error', () => resolve(undefined));
  worker.once('exit', () => resolve(undefined));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
