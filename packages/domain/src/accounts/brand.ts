import { isBlank } from '../requests/characters.ts';
import { checkField } from '../requests/check-field.ts';
import {
  emailRule,
  type FieldError,
  patternFormat,
  type TextRule,
  textRule,
  urlRule,
} from '../requests/field-rules.ts';
import { failed, type Result, success } from '../result.ts';

/** The formats of a logo. */
export const logoTypes = ['png', 'jpeg', 'webp'] as const;

/** One of {@link logoTypes}. */
export type LogoType = (typeof logoTypes)[number];

/** A logo as pages refer to it. */
export interface Logo {
  /** The SHA-256 of the image in base64url. */
  readonly digest: string;
  readonly type: LogoType;
  /** In pixels. */
  readonly width: number;
  readonly height: number;
}

/** The limits of a logo: its size in bytes, and its width and height in pixels. */
export const logoLimits = { bytes: 262_144, pixels: 2_000 } as const;

const optionalUrl: TextRule = { ...urlRule, required: false };
const colorForm = /^(?:#[0-9A-Fa-f]{6})?$/;
const colorMessage = 'must be # and six hexadecimal digits, such as #0b5fff';

/** The rules for a brand's texts. */
export const brandRules = {
  color: textRule(7, { required: false, format: patternFormat(colorForm, /[^#0-9A-Fa-f]/u, colorMessage) }),
  support_email: { ...emailRule, required: false },
  support_url: optionalUrl,
  terms_url: optionalUrl,
  privacy_url: optionalUrl,
  payment_instructions: textRule(1_000, { required: false, multiline: true }),
} as const satisfies Readonly<Record<string, TextRule>>;

/** One of {@link brandFieldNames}. */
export type BrandFieldName = keyof typeof brandRules;

/** The names of the texts of a brand. */
export const brandFieldNames = Object.keys(brandRules) as readonly BrandFieldName[];

/** Returns an object with a value for each text of a brand. */
export function brandTextsOf<Value>(read: (name: BrandFieldName) => Value): Readonly<Record<BrandFieldName, Value>> {
  return Object.fromEntries(brandFieldNames.map((name) => [name, read(name)])) as Record<BrandFieldName, Value>;
}

/** How a merchant's payment pages look. `null`: not set. */
export interface Brand extends Readonly<Record<BrandFieldName, string | null>> {
  readonly logo: Logo | null;
}

/** A brand without any settings. */
export const noBrand: Brand = { logo: null, ...brandTextsOf(() => null) };

/** The texts to change. An empty text removes the stored one, and an absent text leaves it unchanged. */
export type BrandTexts = Readonly<Partial<Record<BrandFieldName, string>>>;

/** A logo with its image. */
export interface StoredLogo {
  readonly type: LogoType;
  readonly image: Uint8Array;
}

/** A change to a brand. If the logo is `undefined`, it stays the same; `null` removes it. */
export interface BrandChange {
  readonly texts: BrandTexts;
  readonly logo: (Logo & StoredLogo) | null | undefined;
}

/** The brands of merchants. The audit log records every change, and the digest of each new logo. */
export interface BrandStore {
  /** Returns a merchant's brand; `undefined` if there is no such merchant. */
  findBrand(clientId: string): Promise<Brand | undefined>;

  /**
   * Changes a merchant's brand. Pages show the change within half a second. Returns whether there is such a merchant.
   */
  updateBrand(clientId: string, change: BrandChange): Promise<boolean>;
}

/**
 * Checks the texts of a brand. Returns the texts that were sent, or an error for each invalid one. A blank text counts
 * as empty.
 */
export function parseBrand(
  input: Readonly<Record<string, unknown>>,
): Result<BrandTexts, readonly FieldError<string>[]> {
  const errors: FieldError<string>[] = [];
  const texts: Partial<Record<BrandFieldName, string>> = {};
  for (const field of brandFieldNames) {
    const value = input[field];
    if (value === undefined || value === null) continue;
    const checked = checkField(brandRules[field], value);
    // A text that shows nothing, such as the line break that a form keeps, would hide what the page says without it.
    if (typeof checked === 'string') texts[field] = isBlank(checked) ? '' : checked;
    else if (typeof checked === 'object') errors.push({ field, ...checked });
  }
  return errors.length === 0 ? success(texts) : failed(errors);
}
