/**
 * Returns the JSON of a request body, without its members that are undefined. Throws a TypeError for a value that JSON
 * cannot represent. JSON.stringify would replace such a value with null or {}, or omit it, so that the request would
 * succeed without it: an order with an invalid date as its expiry would never expire.
 */
export function bodyOf(members: object): string {
  requirePlain(members, 'The request');
  const present = Object.entries(members).filter(([, value]) => value !== undefined);
  for (const [name, value] of present) requireJson(value, name);
  return JSON.stringify(Object.fromEntries(present));
}

function requireJson(value: unknown, name: string): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return;
  if (isDate(value)) {
    if (Number.isNaN(value.getTime())) throw new TypeError(`${name} is an invalid date`);
    return;
  }
  // Array.from turns the holes of an array into undefined.
  const entries = Array.isArray(value) ? Array.from(value).entries() : Object.entries(requirePlain(value, name));
  for (const [key, item] of entries) requireJson(item, `${name}.${key}`);
}

/** Returns the value if it is a plain object, whose own members are all that it contains. Otherwise, throws. */
export function requirePlain(value: unknown, name: string): object {
  if (typeof value === 'object' && value !== null) {
    const prototype = Object.getPrototypeOf(value);
    // The prototype of plain objects differs between realms, such as those of a test runner.
    if (prototype === null || Object.getPrototypeOf(prototype) === null) return value;
  }
  throw new TypeError(`${name} must be a plain object without values that JSON cannot represent`);
}

function isDate(value: unknown): value is Date {
  return Object.prototype.toString.call(value) === '[object Date]';
}
