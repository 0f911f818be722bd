import jsqr from 'jsqr';
import { expect, test } from 'vitest';
import { qrCodeSvg } from './qr-code.ts';

/** Draws each dark module of an SVG as 4 by 4 pixels. */
function pixelsOf(svg: string) {
  const width = 4 * Number(/viewBox="0 -\.5 (\d+) /.exec(svg)?.[1]);
  const data = new Uint8ClampedArray(4 * width * width).fill(255);
  for (const [, x, y, length] of svg.matchAll(/M(\d+) (\d+)h(\d+)/g)) {
    for (let row = 4 * Number(y); row < 4 * Number(y) + 4; row++) {
      const start = row * width + 4 * Number(x);
      for (let pixel = start; pixel < start + 4 * Number(length); pixel++) data.fill(0, 4 * pixel, 4 * pixel + 3);
    }
  }
  return { width, height: width, data };
}

test.each([
  `https://pay.example.com/payment/${'aB3x'.repeat(8)}`,
  `http://localhost:8080/payment/${'0'.repeat(32)}`,
  `https://${'sub.'.repeat(50)}example.com/a/long/path/payment/${'Zz9'.repeat(11)}`,
])('the library jsQR reads the code of %s', (link) => {
  readsAs(link, qrCodeSvg(link));
});

test('the library jsQR reads a code with medium error correction, outside ASCII', () => {
  const text = 'BCD\n002\n1\nSCT\n\nKäse & Wein\nDE89370400440532013000\nEUR12.30\n\nRF18539007547034';
  readsAs(text, qrCodeSvg(text, 'medium'));
});

function readsAs(text: string, svg: string): void {
  const { width, height, data } = pixelsOf(svg);
  expect(jsqr.default(data, width, height)?.data).toBe(text);
  // The first run is the top edge of a finder pattern, after the margin.
  expect(svg).toContain(' d="M4 4h7M');
}
