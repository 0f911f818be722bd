import { nameAndMeaning, wrapped } from './columns.ts';

/** A service that a command starts. */
interface Service {
  readonly command: string;
  readonly name: string;
  readonly variables: Readonly<
    Record<string, { readonly name: string; readonly help: string; readonly defaultText: string }>
  >;
  /** The names of the variables that can also be read from files. */
  readonly secretNames: readonly string[];
}

/** Returns the help of a command that starts a service, which is configured with environment variables. */
export function serviceUsage({ command, name: service, variables, secretNames }: Service): string {
  const files = new Intl.ListFormat('en-GB').format(secretNames.map((name) => `${name}_FILE`));
  return `Usage: ${command} [options]

Starts the ${service}, with the configuration in environment variables.

Options:
  -h, --help     show this help
  -V, --version  show the version

Variables:
${Object.values(variables)
  .map(({ name, help, defaultText }) => nameAndMeaning(name, `${help} (${defaultText})`, 26))
  .join('\n')}

${wrapped(`${files} name files that hold these values.`)}
Exit codes: 0 stopped; 1 the start failed, or a stop took too long; 2 an
argument is invalid.
`;
}
