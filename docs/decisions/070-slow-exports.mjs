// Node.js 26 imports a package slowly if its package.json has many `exports`: the time grows with the number of its
// files times that of the exports, although the files import each other by relative paths. Run it with both versions:
//   node 070-slow-exports.mjs
// On two busy cores, Node.js 26.10.0 took 98, 125, 604 and 1,075 ms, and Node.js 20.20.2 about 200 ms each time.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const files = 200;
const root = mkdtempSync(join(tmpdir(), 'slow-exports-'));

/** Makes a package whose index imports the other files, and returns how long a process takes to import it. */
function measure(entries) {
  const folder = join(root, 'node_modules', `exports-${entries}`);
  mkdirSync(folder, { recursive: true });
  const file = (name) => ({
    import: { types: `./${name}.d.ts`, default: `./${name}.js` },
    require: { types: `./${name}.d.cts`, default: `./${name}.cjs` },
    types: `./${name}.d.ts`,
    default: `./${name}.js`,
  });
  const exports = { '.': './index.js' };
  for (let index = 1; index < entries; index += 1) exports[`./file-${index}`] = file(`file-${index}`);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: `exports-${entries}`, type: 'module', exports }));
  let index = '';
  for (let number = 0; number < files; number += 1) {
    writeFileSync(join(folder, `file-${number}.js`), `export const value${number} = ${number};\n`);
    index += `import './file-${number}.js';\n`;
  }
  writeFileSync(join(folder, 'index.js'), index);
  const script = `
    const start = performance.now();
    await import('exports-${entries}');
    process.stdout.write(String(performance.now() - start));`;
  const times = Array.from({ length: 5 }, () =>
    Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: root })),
  );
  return Math.min(...times).toFixed(0);
}

try {
  for (const entries of [1, 100, 200, 447])
    process.stdout.write(`${process.version}: ${files} files, ${entries} exports: ${measure(entries)} ms\n`);
} finally {
  rmSync(root, { recursive: true });
}
