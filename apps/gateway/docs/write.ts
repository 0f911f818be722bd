import { writeFile } from 'node:fs/promises';
import { errorsPage } from './errors-page.ts';

await writeFile(new URL('../../../docs/errors.md', import.meta.url), errorsPage());
