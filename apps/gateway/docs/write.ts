import { writeFile } from 'node:fs/promises';
import { collection } from './collection.ts';
import { errorsPage } from './errors-page.ts';

await writeFile(new URL('../../../docs/errors.md', import.meta.url), errorsPage());
await writeFile(new URL('../../../docs/postman-collection.json', import.meta.url), await collection());
