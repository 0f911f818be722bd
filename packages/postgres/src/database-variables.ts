import { resolve } from 'node:path';
import { defaultDataDir } from '@order-gateway/dev-postgres';
import { onOrOff, optional, withDefault } from '@order-gateway/runtime/variables';
import { parseConnectionUrl } from './connections/index.ts';

/** The rule and the parser of a database URL. The rule is empty, because the parser's own error contains it. */
export const connectionUrl = { rule: '', parse: (text: string) => parseConnectionUrl(text) && text };

/** Returns the variables of a service's database. `url` describes DATABASE_URL and what is used without it. */
export function databaseVariables(url: { readonly help: string; readonly defaultText: string }) {
  return {
    /** Absent: the embedded PostgreSQL, with its data in `dataDir`. */
    databaseUrl: optional({ name: 'DATABASE_URL', ...url, ...connectionUrl }),
    dataDir: {
      ...optional({
        name: 'DATA_DIR',
        help: "the embedded PostgreSQL's data",
        defaultText: '.data/',
        rule: 'must be a folder',
        parse: (text) => resolve(text),
      }),
      defaultValue: defaultDataDir,
    },
    migrate: withDefault({
      name: 'MIGRATE',
      help: 'off: never changes the schema, so run migrate first',
      defaultText: 'on',
      ...onOrOff,
    }),
  };
}
