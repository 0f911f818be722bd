import { crc32, deflateSync } from 'node:zlib';

/** Returns a black PNG with one bit per pixel. `data` replaces its compressed pixels; `chunks` follow the header. */
export function pngOf(
  width: number,
  height: number,
  { data = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height)), chunks = [] as readonly Buffer[] } = {},
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 1;
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  return Buffer.concat([signature, pngChunk('IHDR', header), ...chunks, pngChunk('IDAT', data), pngChunk('IEND')]);
}

export function pngChunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

/** A JPEG and a WebP of 8 x 4 pixels. */
export const jpeg = Buffer.from(
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6j' +
    'q62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk' +
    'pKSkpKSkpKT/wAARCAAEAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QA' +
    'FAEBAAAAAAAAAAAAAAAAAAAABf/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AIwDY9//2Q==',
  'base64',
);
export const webp = Buffer.from('UklGRh4AAABXRUJQVlA4TBEAAAAvB8AAAAfQry70v/+BiOh/AAA=', 'base64');

/**
 * Returns a progressive JPEG of 1,024 x 1,024 grey pixels. The data of each later scan is two bytes long, but a decoder
 * visits every pixel for each of them.
 */
export function progressiveJpeg(scans: number): Buffer {
  const size = [1_024 >> 8, 0];
  const blocks = 128 * 128;
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    jpegSegment(0xdb, [0, ...new Array(64).fill(1)]),
    jpegSegment(0xc2, [8, ...size, ...size, 1, 1, 0x11, 0]),
    // Each table has a single code of one bit. In the first it means "no difference", in the second a run of 16,384
    // blocks or more.
    jpegSegment(0xc4, [0x00, 1, ...new Array(15).fill(0), 0]),
    jpegSegment(0xc4, [0x10, 1, ...new Array(15).fill(0), 0xe0]),
    jpegSegment(0xda, [1, 1, 0, 0, 0, 0]),
    Buffer.alloc(blocks / 8),
    ...new Array(scans - 1).fill(Buffer.concat([jpegSegment(0xda, [1, 1, 0, 1, 63, 0]), Buffer.from([0x00, 0x01])])),
    Buffer.from([0xff, 0xd9]),
  ]);
}

function jpegSegment(marker: number, content: readonly number[]): Buffer {
  const length = content.length + 2;
  return Buffer.from([0xff, marker, length >> 8, length & 0xff, ...content]);
}
