import type { BaseUrl } from '@order-gateway/domain/links';
import { encodeQR } from 'qr';
import { isLoopbackUrl } from '../network/ip-address.ts';

/** The margin that scanners need around the code (ISO/IEC 18004). */
const quietZoneModules = 4;

/** Whether links get a code: a phone can't open an address of this machine. */
export function hasQrCode(baseUrl: BaseUrl): boolean {
  return !isLoopbackUrl(new URL(baseUrl));
}

/**
 * A QR code as SVG, black on white in every theme. The mask is fixed: scanners read all eight masks, and choosing the
 * best one takes as long as the rest of the encoding.
 */
export function qrCodeSvg(text: string): string {
  const modules = encodeQR(text, 'raw', { ecc: 'low', border: quietZoneModules, mask: 0 });
  const size = modules.length;
  // Each row of modules is half above and half below its line. One stroke for each module would triple the size of the page.
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -.5 ${size} ${size}" shape-rendering="crispEdges" aria-hidden="true"><path fill="#fff" d="M0-.5h${size}v${size}H0z"/><path stroke="#000" d="${modules.map(strokesOf).join('')}"/></svg>`;
}

/** A stroke for each run of dark modules in a row. */
function strokesOf(row: readonly boolean[], y: number): string {
  let strokes = '';
  for (let start = row.indexOf(true); start !== -1; ) {
    const end = row.indexOf(false, start);
    strokes += `M${start} ${y}h${end - start}`;
    start = row.indexOf(true, end);
  }
  return strokes;
}
