import { readFileSync } from 'node:fs';
import { StartError } from './process.ts';

/** An environment variable. */
export interface Variable<Value> {
  readonly name: string;
  readonly help: string;
  /** The default, as the help text describes it. */
  readonly defaultText: string;
  readonly defaultValue: Value | undefined;
  /** The rule for valid values. It follows the name in the error message, such as `must be a port`. */
  readonly rule: string;
  readonly parse: (text: string) => Value | undefined;
}

type Definition<Value> = Omit<Variable<Value>, 'defaultValue'>;

/** Defines a variable without a default value. `defaultText` describes what happens if it is not set. */
export function optional<Value>(definition: Definition<Value>): Variable<Value> {
  return { ...definition, defaultValue: undefined };
}

/** Defines a variable whose default value is the parsed `defaultText`. */
export function withDefault<Value>(definition: Definition<Value>) {
  return { ...definition, defaultValue: definition.parse(definition.defaultText) as Value };
}

/** How many characters of an invalid value an error message shows. */
const shownMax = 100;

/** The rule and the parser of values that are kept as they are. */
export const anyText = { rule: '', parse: (text: string) => text };

/** The rule and the parser of a switch. */
export const onOrOff = choice({ on: true, off: false });

/** The rule and the parser of a port. */
export const port = numberFrom([0, 65_535], 'a port');

/** Returns the rule and the parser of a whole number without a sign. */
export function numberFrom([min, max]: readonly [number, number], kind = 'a whole number') {
  return { rule: `must be ${kind} from ${min} to ${max}`, parse: wholeNumber(min, max) };
}

/** Returns the rule and the parser of a choice among the names in `values`. */
export function choice<const Value>(values: Readonly<Record<string, Value>>) {
  const names = Object.keys(values);
  return {
    rule: `must be ${names.length === 2 ? names.join(' or ') : `one of ${names.join(', ')}`}`,
    parse: (text: string) => (Object.hasOwn(values, text) ? values[text] : undefined),
  };
}

/** The variable `HOST`. */
export const host = withDefault({
  name: 'HOST',
  help: 'the address to listen on',
  defaultText: '127.0.0.1',
  rule: 'must be an address or a host name',
  parse: (text) => (/\s/.test(text) ? undefined : text),
});

/** The variable `LOG_LEVEL`. */
export const logLevel = withDefault({
  name: 'LOG_LEVEL',
  help: 'error, warn or info',
  defaultText: 'info',
  ...choice({ error: 'error', warn: 'warn', info: 'info' }),
});

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The values of variables, by the keys of the variables. */
export type Values<Variables extends Readonly<Record<string, Variable<unknown>>>> = {
  readonly [Key in keyof Variables]:
    | Exclude<ReturnType<Variables[Key]['parse']>, undefined>
    | Variables[Key]['defaultValue'];
};

/** A parser throws it if what is wrong depends on the value. The message follows the variable's name. */
export class InvalidValue extends Error {
  override name = 'InvalidValue';
}

/**
 * Reads variables, and the files of those that are secrets. Returns the values and all problems, each as a line with
 * the variable, what is allowed, and the value unless it is a secret.
 */
export function readVariables<Variables extends Readonly<Record<string, Variable<unknown>>>>(
  variables: Variables,
  secretNames: readonly string[],
  env: Environment,
): { readonly values: Values<Variables>; readonly problems: string[] } {
  const problems: string[] = [];
  const read = ({ name, parse, rule, defaultValue }: Variable<unknown>): unknown => {
    try {
      const isSecret = secretNames.includes(name);
      const text = isSecret ? readSecret(env, name) : env[name];
      if (text === undefined || text === '') return defaultValue;
      const value = parse(text);
      if (value !== undefined) return value;
      problems.push(`${name} ${rule}${isSecret ? '' : `, not ${shown(text)}`}`);
    } catch (error) {
      if (error instanceof StartError) problems.push(error.message);
      else if (error instanceof InvalidValue) problems.push(`${name} ${error.message}`);
      else throw error;
    }
    return defaultValue;
  };
  const entries = Object.entries(variables).map(([key, variable]) => [key, read(variable)]);
  return { values: Object.fromEntries(entries), problems };
}

/**
 * Reads a secret from its variable, or from the file that its `_FILE` variable names, without surrounding white space.
 */
function readSecret(env: Environment, name: string): string | undefined {
  const fileName = `${name}_FILE`;
  const file = env[fileName];
  if (!file) return env[name];
  if (env[name]) throw new StartError(`${name} and ${fileName} are both set: set only one of them`);
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new StartError(
      `${fileName} must be a file that can be read, not ${shown(file)} (${(error as NodeJS.ErrnoException).code})`,
    );
  }
  if (text === '') throw new StartError(`${fileName} must be a file with a value, but ${shown(file)} is empty`);
  return text;
}

/** Formats an invalid value on one line, shortened and without the user and password of a URL. */
function shown(text: string): string {
  const value = text.replace(/\/\/[^/]*@/, '//...@');
  return JSON.stringify(value.length > shownMax ? `${value.slice(0, shownMax)}...` : value);
}

/** Returns a parser of whole numbers without a sign. It returns `undefined` for any other text. */
export function wholeNumber(min: number, max: number): (text: string) => number | undefined {
  return (text) => (/^\d{1,7}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined);
}
