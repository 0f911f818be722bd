import { JsonNumber as WrittenNumber } from '@gateway/fixtures/json-number';

/** Reads members of one JSON object and throws an Error with a sentence for the first that has another shape. */
export class JsonShape {
  readonly #where: string;
  readonly #members: Readonly<Record<string, unknown>>;

  /** Refuses what is no object and members outside `known`, so that a typing error is not taken for silence. */
  constructor(where: string, value: unknown, known: readonly string[]) {
    this.#where = where;
    if (!isObject(value)) throw new Error(`${where} must be an object`);
    this.#members = value;
    const stranger = Object.keys(value).find((name) => !known.includes(name));
    if (stranger !== undefined) throw new Error(`${where} has the unknown member ${stranger}`);
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#members, name);
  }

  unknown(name: string): unknown {
    return this.has(name) ? this.#members[name] : undefined;
  }

  text(name: string): string {
    const value = this.unknown(name);
    if (typeof value !== 'string' || value === '') throw this.fault(name, 'must be a text');
    return value;
  }

  textIfAny(name: string): string | undefined {
    return this.has(name) ? this.text(name) : undefined;
  }

  integerIfAny(name: string): number | undefined {
    if (!this.has(name)) return undefined;
    const value = this.unknown(name);
    const number = value instanceof WrittenNumber ? Number(value.text) : Number.NaN;
    if (!Number.isSafeInteger(number) || number < 1) throw this.fault(name, 'must be a positive integer');
    return number;
  }

  /** A number from `least` to `most`. */
  numberIfAny(name: string, least: number, most: number): number | undefined {
    if (!this.has(name)) return undefined;
    const value = this.unknown(name);
    const number = value instanceof WrittenNumber ? Number(value.text) : Number.NaN;
    if (!(number >= least && number <= most)) throw this.fault(name, `must be a number from ${least} to ${most}`);
    return number;
  }

  boolean(name: string): boolean {
    const value = this.unknown(name) ?? false;
    if (typeof value !== 'boolean') throw this.fault(name, 'must be true or false');
    return value;
  }

  object(name: string): Readonly<Record<string, unknown>> {
    const value = this.unknown(name);
    if (!isObject(value)) throw this.fault(name, 'must be an object');
    return value;
  }

  /** Texts by name, `null` among them. None when the member is absent. */
  textsOrNulls(name: string): Readonly<Record<string, string | null>> {
    if (!this.has(name)) return {};
    const texts: Record<string, string | null> = {};
    for (const [key, value] of Object.entries(this.object(name))) {
      if (value !== null && typeof value !== 'string') throw this.fault(`${name}.${key}`, 'must be a text or null');
      texts[key.toLowerCase()] = value;
    }
    return texts;
  }

  list(name: string): readonly unknown[] {
    const value = this.unknown(name) ?? [];
    if (!Array.isArray(value)) throw this.fault(name, 'must be a list');
    return value;
  }

  texts(name: string): readonly string[] {
    return this.list(name).map((item) => {
      if (typeof item !== 'string') throw this.fault(name, 'must be a list of texts');
      return item;
    });
  }

  fault(name: string, told: string): Error {
    return new Error(`${this.#where}.${name} ${told}`);
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof WrittenNumber);
}
