import { encodeQR } from 'qr';

/** The margin that scanners need around the code (ISO/IEC 18004). */
const quietZoneModules = 4;

/**
 * Returns a QR code as SVG, black on white in every theme. The mask is fixed, because scanners read all eight masks,
 * and choosing the best one takes as long as the rest of the encoding. `correction` is the part of the code that may be
 * damaged: 7 or 15 percent.
 */
export function qrCodeSvg(text: string, correction: 'low' | 'medium' = 'low'): string {
  const modules = encodeQR(text, 'raw', { ecc: correction, border: quietZoneModules, mask: 0 });
  const size = modules.length;
  // A stroke is centred on its line, so the view box begins half a module above the first row. Each run of dark modules
  // is one stroke: a stroke for each module would triple the size of the image.
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -.5 ${size} ${size}" shape-rendering="crispEdges" aria-hidden="true"><path fill="#fff" d="M0-.5h${size}v${size}H0z"/><path stroke="#000" d="${modules.map(strokesOf).join('')}"/></svg>`;
}

/** Returns the path of a row, with one stroke for each run of dark modules. */
function strokesOf(row: readonly boolean[], y: number): string {
  let strokes = '';
  for (let start = row.indexOf(true); start !== -1; ) {
    const end = row.indexOf(false, start);
    strokes += `M${start} ${y}h${end - start}`;
    start = row.indexOf(true, end);
  }
  return strokes;
}
