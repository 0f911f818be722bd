/** A colour as red, green and blue, each 0 to 255. */
type Rgb = readonly [number, number, number];

const white: Rgb = [255, 255, 255];
const black: Rgb = [0, 0, 0];

/**
 * The colours of the page's cards in the light and the dark theme. The links are on the cards. The style sheet uses the
 * same colours.
 */
export const cardColors = { light: '#ffffff', dark: '#191c23' } as const;

/** The minimum contrast of text (WCAG 2.2, 1.4.3, level AA). */
const contrastMin = 4.5;

/** The colour of a page whose merchant has not chosen a colour. */
export const defaultColor = '#1d4ed8';

// Cached, because deriving the colours takes a twentieth of a page's CPU time.
const derivedColors = new Map<string, ReturnType<typeof deriveColors>>();
const derivedColorsMax = 1_000;

/**
 * Returns the colours derived from a merchant's colour. Text on the merchant's colour is black or white, whichever has
 * the better contrast, which is always sufficient. For text in the merchant's colour, the colour is darkened or
 * lightened until the text is readable on the card.
 */
export function brandColors(color: string) {
  if (derivedColors.size > derivedColorsMax) derivedColors.clear();
  return derivedColors.getOrInsertComputed(color, deriveColors);
}

function deriveColors(color: string) {
  const rgb = rgbOf(color);
  const onAccent = contrast(rgb, white) >= contrast(rgb, black) ? white : black;
  return {
    accent: hexOf(rgb),
    onAccent: hexOf(onAccent),
    link: hexOf(readableOn(rgbOf(cardColors.light), rgb, black)),
    linkInDark: hexOf(readableOn(rgbOf(cardColors.dark), rgb, white)),
  };
}

/** Returns the style sheet of a brand, which follows the page's style sheet. It does not apply to printed pages. */
export function brandStyle(color: string): string {
  const { accent, onAccent, link, linkInDark } = brandColors(color);
  return `@media screen{:root{--accent:${accent};--on-accent:${onAccent};--link:${link}}}@media screen and (prefers-color-scheme:dark){:root{--link:${linkInDark}}}`;
}

/** Returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.2). */
export function contrastOf(color: string, otherColor: string): number {
  return contrast(rgbOf(color), rgbOf(otherColor));
}

function contrast(color: Rgb, otherColor: Rgb): number {
  const [dark = 0, light = 0] = [luminance(color), luminance(otherColor)].toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: Rgb): number {
  const [red = 0, green = 0, blue = 0] = color.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Returns a colour mixed with just enough of `towards` to be readable on `ground`. */
function readableOn(ground: Rgb, color: Rgb, towards: Rgb): Rgb {
  for (let share = 0; share < 1; share += 0.05) {
    const mix = (part: 0 | 1 | 2) => Math.round(color[part] + (towards[part] - color[part]) * share);
    const mixed: Rgb = [mix(0), mix(1), mix(2)];
    if (contrast(mixed, ground) >= contrastMin) return mixed;
  }
  return towards;
}

function rgbOf(color: string): Rgb {
  const number = Number.parseInt(color.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

function hexOf(color: Rgb): string {
  return `#${color.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}
