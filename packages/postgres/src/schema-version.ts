import journal from '../migrations/meta/_journal.json' with { type: 'json' };

/** The name of the latest migration, whose schema this code needs, such as `0000_initial`. */
export const schemaVersion: string = journal.entries.at(-1)?.tag ?? '';
