import { expect, test } from 'vitest';
import { brandColors, brandStyle, cardColors, contrastOf } from './brand-style.ts';

const contrastMin = 4.5;

test('contrastOf returns the contrast ratios of WCAG', () => {
  expect(contrastOf('#000000', '#ffffff')).toBeCloseTo(21, 5);
  expect(contrastOf('#777777', '#ffffff')).toBeCloseTo(4.48, 2);
  expect(contrastOf('#0b5fff', '#0b5fff')).toBe(1);
});

test('every text has a contrast of at least 4.5 with 1,000 random colours and with extreme ones', () => {
  const random = Array.from({ length: 1_000 }, () => Math.floor(Math.random() * 0x1_000_000));
  for (const number of [...random, 0, 0xffffff, 0xff0000, 0x00ff00, 0x0000ff, 0xffff00, 0x757575, 0x777777]) {
    const color = `#${number.toString(16).padStart(6, '0')}`;
    const { accent, onAccent, link, linkInDark } = brandColors(color);
    expect(accent).toBe(color);
    expect(['#000000', '#ffffff']).toContain(onAccent);
    expect(contrastOf(onAccent, accent), color).toBeGreaterThanOrEqual(contrastMin);
    expect(contrastOf(link, cardColors.light), color).toBeGreaterThanOrEqual(contrastMin);
    expect(contrastOf(linkInDark, cardColors.dark), color).toBeGreaterThanOrEqual(contrastMin);
  }
});

test('a readable colour is not changed', () => {
  expect(brandColors('#0B5FFF')).toMatchObject({ accent: '#0b5fff', onAccent: '#ffffff', link: '#0b5fff' });
  expect(brandColors('#ffe066')).toMatchObject({ onAccent: '#000000', linkInDark: '#ffe066' });
  expect(brandStyle('#0b5fff')).toContain('--accent:#0b5fff;--on-accent:#ffffff;--link:#0b5fff');
});
