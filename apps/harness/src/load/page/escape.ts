const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A value as text or as an attribute's value in HTML and SVG. */
export function escaped(value: string | number): string {
  return String(value).replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
}
