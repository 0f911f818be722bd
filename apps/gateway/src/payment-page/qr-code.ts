import { encode } from 'uqr';

/** The margin that scanners need around the code (ISO/IEC 18004). */
const quietZoneModules = 4;

/**
 * A QR code as SVG, black on white in every theme. The mask is fixed: scanners read all eight, and comparing them takes ten
 * times as long as the rest.
 */
export function qrCodeSvg(text: string): string {
  const { data, size } = encode(text, { border: quietZoneModules, maskPattern: 0 });
  // One line for each run of dark modules: one for each module would make the page three times as large.
  const runs = data.flatMap((row, y) =>
    [
      ...row
        .map((isDark) => (isDark ? '1' : '0'))
        .join('')
        .matchAll(/1+/g),
    ].map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges" aria-hidden="true"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${runs.join('')}"/></svg>`;
}
