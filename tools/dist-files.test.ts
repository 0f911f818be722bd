import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { licenceTexts, reproducibleSbom } from './dist-files.ts';
import { temporaryFolder } from './test-resources.ts';

test('two bills of materials of one commit are identical', () => {
  const components = [{ 'bom-ref': 'b' }, { 'bom-ref': 'a' }];
  const dependencies = [{ ref: 'b' }, { ref: 'a', dependsOn: ['d', 'c'] }];
  const first = { serialNumber: 'urn:uuid:1', metadata: { timestamp: '1' }, components, dependencies };
  const second = {
    serialNumber: 'urn:uuid:2',
    metadata: { timestamp: '2' },
    components: components.toReversed(),
    dependencies: [{ ref: 'a', dependsOn: ['c', 'd'] }, { ref: 'b' }],
  };
  const [one, two] = [first, second].map((bom) => reproducibleSbom(JSON.stringify(bom), 1_000));
  expect(two).toBe(one);
  expect(JSON.parse(one ?? '')).toMatchObject({
    serialNumber: expect.stringMatching(/^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/),
    metadata: { timestamp: '1970-01-01T00:16:40.000Z' },
    components: [{ 'bom-ref': 'a' }, { 'bom-ref': 'b' }],
  });
});

test('a package without a licence file gets the text of each licence that it names', async () => {
  const folder = await temporaryFolder();
  const pathOf = async (name: string, text?: string) => {
    const path = join(folder, name);
    await mkdir(path);
    if (text !== undefined) await writeFile(join(path, 'LICENSE'), text);
    return { name, versions: ['1.0.0'], paths: [path], author: `the author of ${name}` };
  };
  const texts = licenceTexts({
    MIT: [await pathOf('complete', 'Permission is granted')],
    'MIT AND ISC': [await pathOf('bare')],
  });
  const [bare, complete] = texts.split('-'.repeat(80));
  expect(bare).toContain('The copyright is that of the author of bare');
  expect(bare).toContain('from complete:\n\nPermission is granted');
  expect(bare).toContain('https://spdx.org/licenses/ISC');
  expect(complete?.trim()).toBe('complete 1.0.0: MIT\n\nPermission is granted');
});
