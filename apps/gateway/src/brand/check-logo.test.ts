import { deflateSync } from 'node:zlib';
import { logoLimits } from '@order-gateway/domain/accounts/brand';
import { expect, test } from 'vitest';
import { jpeg, pngChunk, pngOf, webp } from '../../test/helpers/images.ts';
import { createCheckLogo } from './check-logo.ts';

const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><script>alert(1)</script></svg>';
const signature = Buffer.from('89504e470d0a1a0a', 'hex');
const zeros = (bytes: number) => deflateSync(Buffer.alloc(bytes), { level: 9 });

test.each([
  ['png', 8, 4, pngOf(8, 4)],
  ['png', 2_000, 2_000, pngOf(2_000, 2_000)],
  ['jpeg', 8, 4, jpeg],
  ['webp', 8, 4, webp],
])('accepts a %s of %d x %d pixels', async (type, width, height, image) => {
  const checked = await createCheckLogo()(image);
  const digest = expect.stringMatching(/^[\w-]{43}$/);
  expect(checked).toEqual({ ok: true, value: { type, width, height, digest, image } });
});

test('the digest is that of the image alone', async () => {
  const digests = await Promise.all(
    [jpeg, jpeg, webp].map(async (image) => {
      const checked = await createCheckLogo()(image);
      return checked.ok && checked.value.digest;
    }),
  );
  expect(new Set(digests).size).toBe(2);
});

test.each([
  ['nothing', 'bad_format', Buffer.alloc(0)],
  ['text', 'bad_format', Buffer.from('logo')],
  ['an SVG', 'bad_format', Buffer.from(svg)],
  ['an SVG with an XML declaration', 'bad_format', Buffer.from(`<?xml version="1.0"?>${svg}`)],
  ['an SVG in the clothing of a PNG', 'bad_format', Buffer.concat([signature, Buffer.from(svg)])],
  ['a GIF', 'bad_format', Buffer.from('R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==', 'base64')],
  ['a PNG that ends early', 'bad_format', pngOf(8, 4).subarray(0, 50)],
  ['a PNG with a wrong checksum', 'bad_format', Buffer.from(pngOf(8, 4)).fill(1, 45, 47)],
  ['a PNG without pixels', 'bad_format', pngOf(8, 4, { data: Buffer.alloc(0) })],
  ['a JPEG that ends early', 'bad_format', jpeg.subarray(0, jpeg.length / 2)],
  ['a WebP that ends early', 'bad_format', webp.subarray(0, webp.length / 2)],
  ['a PNG that is too wide', 'out_of_range', pngOf(2_001, 1)],
  ['a PNG that is too high', 'out_of_range', pngOf(1, 2_001)],
  ['a PNG that would unpack to gigabytes', 'out_of_range', pngOf(60_000, 60_000, { data: zeros(1_000) })],
  ['a file that is too large', 'too_long', pngOf(8, 4, { more: [pngChunk('teXt', Buffer.alloc(logoLimits.bytes))] })],
])('rejects %s: %s', async (_, code, image) => {
  expect(await createCheckLogo()(image)).toEqual({
    ok: false,
    failure: { kind: 'invalid_request', errors: [{ field: 'logo', code, message: expect.stringMatching(/^must /) }] },
  });
});

test.each([
  ['pixels', pngOf(8, 4, { data: zeros(100_000_000) })],
  ['text', pngOf(8, 4, { more: [pngChunk('zTXt', Buffer.concat([Buffer.from('Comment\0\0'), zeros(100_000_000)]))] })],
])('a PNG whose %s unpack to 100 MB takes no memory of the gateway', async (_, image) => {
  expect(image.length).toBeLessThan(logoLimits.bytes);
  const before = process.memoryUsage().arrayBuffers;
  await createCheckLogo()(image);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000);
});

test('more images at a time than it decodes are overloaded', async () => {
  const checkLogo = createCheckLogo();
  const checked = await Promise.all([jpeg, webp, jpeg].map(checkLogo));
  expect(checked.map((one) => (one.ok ? 'checked' : one.failure.kind))).toEqual(['checked', 'checked', 'overloaded']);
});
