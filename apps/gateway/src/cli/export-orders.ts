import { createReadStream, createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { exportOrders, importOrders } from '@gateway/postgres/order-archive';
import type { Command } from 'commander';
import { StartError } from '../process.ts';
import { parseTime, timeForm } from './merchant-commands.ts';
import type { withDatabase } from './with-accounts.ts';

const fileHelp = 'one order a line, as JSON; compressed with gzip if its name ends with .gz';

/** Adds `orders export` and `orders import`. Errors are as with the commands of `pnpm merchant`. */
export function addArchiveCommands(
  program: Command,
  withUrl: typeof withDatabase,
  print: (line: string) => void,
): void {
  program
    .command('export')
    .description('Writes all orders of a time to a file that only its owner can read. Deletes nothing.')
    .argument('<FILE>', fileHelp)
    .requiredOption('--before <TIME>', `orders created before: ${timeForm}`, (text) => parseTime('--before', text))
    .option('--from <TIME>', 'orders created from this time on (default: all)', (text) => parseTime('--from', text))
    .action((file: string, { from, before }: { from?: Date; before: Date }) =>
      withUrl(async (url) => {
        const count = await writeOrders(
          file,
          exportOrders(url, { fromMs: from?.getTime() ?? 0, beforeMs: before.getTime() }),
        );
        print(`Wrote ${count} orders to ${file}`);
      }),
    );

  program
    .command('import')
    .description('Restores the orders of a file. An order that is there already stays as it is.')
    .argument('<FILE>', fileHelp)
    .action((file: string) =>
      withUrl(async (url) => {
        const { restored, existing } = await importOrders(url, linesOf(file));
        print(`Restored ${restored} orders; ${existing} were there already`);
      }),
    );
}

/** Under another name until it is complete and on disk, so that nobody takes half an export for one. */
async function writeOrders(file: string, pages: AsyncIterable<readonly string[]>): Promise<number> {
  let count = 0;
  const text = async function* () {
    for await (const lines of pages) {
      count += lines.length;
      yield lines.map((line) => `${line}\n`).join('');
    }
  };
  const draft = `${file}.part`;
  const output = createWriteStream(draft, { mode: 0o600, flush: true });
  if (file.endsWith('.gz')) await pipeline(Readable.from(text()), createGzip(), output);
  else await pipeline(Readable.from(text()), output);
  await rename(draft, file);
  return count;
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const bytes = createReadStream(file);
  let rest = '';
  // Not by readline, which splits at U+2028, too.
  for await (const chunk of (file.endsWith('.gz') ? bytes.compose(createGunzip()) : bytes).setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') throw new StartError(`${file} is not complete: its last line has no end.`);
}
