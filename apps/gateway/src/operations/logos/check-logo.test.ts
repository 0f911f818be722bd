import { readdir, readFile } from 'node:fs/promises';
import { constants, getPriority } from 'node:os';
import { deflateSync } from 'node:zlib';
import { logoLimits } from '@order-gateway/domain/accounts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { jpeg, pngChunk, pngOf, progressiveJpeg, webp } from '../../../test/helpers/images.ts';
import { logoCheckLimits } from '../../limits.ts';
import { createCheckLogo } from './check-logo.ts';

const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><script>alert(1)</script></svg>';
const signature = Buffer.from('89504e470d0a1a0a', 'hex');
/** Checks an image with ample time and with a separate checker, so that it does not wait for other images. */
const checkLogo = (image: Uint8Array) => createCheckLogo()('merchant', image, () => 60_000);
/** Returns a PNG with this text in a chunk that decoders ignore. */
const pngWith = (text: Buffer) => pngOf(8, 4, { chunks: [pngChunk('teXt', text)] });
const deflatedZeros = (bytes: number) => deflateSync(Buffer.alloc(bytes), { level: 9 });

test.each([
  ['png', 8, 4, pngOf(8, 4)],
  ['png', 2_000, 2_000, pngOf(2_000, 2_000)],
  ['jpeg', 8, 4, jpeg],
  ['webp', 8, 4, webp],
  ['jpeg', 1_024, 1_024, progressiveJpeg(32)],
  ['png', 8, 4, pngWith(Buffer.alloc(logoLimits.bytes - pngWith(Buffer.alloc(0)).length))],
  ['png', 8, 4, pngWith(Buffer.from('ffda'.repeat(33), 'hex'))],
])('a %s of %d x %d pixels is accepted', async (type, width, height, image) => {
  const checked = await checkLogo(image);
  const digest = expect.stringMatching(/^[\w-]{43}$/);
  expect(checked).toEqual({ ok: true, value: { type, width, height, digest, image } });
});

test('the digest depends only on the image', async () => {
  const digests = await Promise.all(
    [jpeg, jpeg, webp].map(async (image) => {
      const checked = await checkLogo(image);
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
  ['an SVG with the signature of a PNG', 'bad_format', Buffer.concat([signature, Buffer.from(svg)])],
  ['a GIF', 'bad_format', Buffer.from('R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==', 'base64')],
  ['a PNG that ends early', 'bad_format', pngOf(8, 4).subarray(0, 50)],
  ['a PNG with a wrong checksum', 'bad_format', Buffer.from(pngOf(8, 4)).fill(1, 45, 47)],
  ['a PNG without pixels', 'bad_format', pngOf(8, 4, { data: Buffer.alloc(0) })],
  ['a JPEG that ends early', 'bad_format', jpeg.subarray(0, jpeg.length / 2)],
  ['a WebP that ends early', 'bad_format', webp.subarray(0, webp.length / 2)],
  ['a PNG that is too wide', 'out_of_range', pngOf(2_001, 1)],
  ['a PNG that is too tall', 'out_of_range', pngOf(1, 2_001)],
  ['a PNG that would unpack to gigabytes', 'out_of_range', pngOf(60_000, 60_000, { data: deflatedZeros(1_000) })],
  ['a JPEG with too many scans', 'out_of_range', progressiveJpeg(33)],
  ['a file that is too large', 'too_long', pngWith(Buffer.alloc(logoLimits.bytes))],
])('%s is rejected: %s', async (_, code, image) => {
  expect(await checkLogo(image)).toEqual({
    ok: false,
    failure: { kind: 'invalid_request', errors: [{ field: 'logo', code, message: expect.stringMatching(/^must /) }] },
  });
});

test.each([
  ['pixels', pngOf(8, 4, { data: deflatedZeros(100_000_000) })],
  [
    'text',
    pngOf(8, 4, {
      chunks: [pngChunk('zTXt', Buffer.concat([Buffer.from('Comment\0\0'), deflatedZeros(100_000_000)]))],
    }),
  ],
])('a PNG whose %s would unpack to 100 MB leaves less than 50 MB in the calling thread', async (_, image) => {
  expect(image.length).toBeLessThan(logoLimits.bytes);
  const before = process.memoryUsage().arrayBuffers;
  await checkLogo(image);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000);
});

const kindOf = (checked: Awaited<ReturnType<typeof checkLogo>>) => (checked.ok ? 'checked' : checked.failure.kind);

test('a check leaves no timer behind', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  expect(kindOf(await checkLogo(webp))).toBe('checked');
  expect(vi.getTimerCount()).toBe(0);
});

test('several images of one merchant do not cause rejections for other merchants', async () => {
  const check = createCheckLogo();
  const merchants = ['hostile', 'hostile', 'other', 'hostile', 'another'];
  const checked = await Promise.all(merchants.map((merchant) => check(merchant, progressiveJpeg(32), () => 60_000)));
  expect(checked.map(kindOf)).toEqual(['checked', 'rate_limited', 'checked', 'rate_limited', 'checked']);
  expect(kindOf(await check('hostile', webp, () => 60_000))).toBe('checked');
});

test('a check fails as overloaded if the images of too many merchants wait', async () => {
  const check = createCheckLogo({ ...logoCheckLimits, waitingMax: 2 });
  const checked = await Promise.all(['a', 'b', 'c'].map((merchant) => check(merchant, jpeg, () => 60_000)));
  expect(checked.map(kindOf)).toEqual(['checked', 'checked', 'overloaded']);
});

test('an image that needs too much CPU time is rejected, and one past its deadline does not delay the next', async () => {
  const strict = createCheckLogo({ ...logoCheckLimits, cpuMs: 10 });
  expect(await strict('merchant', pngOf(2_000, 2_000), () => 60_000)).toMatchObject({
    failure: { errors: [{ field: 'logo', code: 'out_of_range', message: 'must need less CPU time to decode' }] },
  });
  const check = createCheckLogo();
  const checked = await Promise.all([
    check('late', progressiveJpeg(32), () => 1),
    check('too late', webp, () => 0),
    check('in time', webp, () => 60_000),
  ]);
  expect(checked.map(kindOf)).toEqual(['deadline_exceeded', 'deadline_exceeded', 'checked']);
});

test.skipIf(mustSkip('the priority of decoding', process.platform === 'linux' ? undefined : 'it needs Linux'))(
  'the thread that decodes has a lower priority than the threads that serve calls',
  async () => {
    // Field 19 of proc_pid_stat(5): 17 fields after the name, which ends with a parenthesis.
    const niceness = (stat: string) => Number(stat.slice(stat.lastIndexOf(')')).split(' ')[17]);
    const highestNiceness = async () => {
      const tasks = await readdir('/proc/self/task');
      const stats = tasks.map((task) => readFile(`/proc/self/task/${task}/stat`, 'utf8').catch(() => ''));
      return Math.max(...(await Promise.all(stats)).filter((stat) => stat !== '').map(niceness));
    };
    const ownNiceness = getPriority();
    const seen = new Set([await highestNiceness()]);
    let isDecoding = true;
    const checking = checkLogo(pngOf(2_000, 2_000)).finally(() => {
      isDecoding = false;
    });
    while (isDecoding) seen.add(await highestNiceness());
    await checking;
    expect([...seen]).toEqual([ownNiceness, Math.min(ownNiceness + 10, constants.priority.PRIORITY_LOW)]);
  },
);
