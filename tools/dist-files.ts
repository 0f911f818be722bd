import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Component {
  readonly 'bom-ref'?: string;
  readonly ref?: string;
}

/**
 * Returns a CycloneDX bill of materials with its lists sorted, the time of the commit, and a serial number that follows
 * from its content, so that two builds of a commit are identical.
 */
export function reproducibleSbom(text: string, committedAtSeconds: number): string {
  const { serialNumber: _, ...bom } = JSON.parse(text);
  const keyOf = (component: Component) => component['bom-ref'] ?? component.ref ?? '';
  const sorted = <Item extends Component>(items: readonly Item[]) =>
    items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const content = {
    ...bom,
    metadata: { ...bom.metadata, timestamp: new Date(committedAtSeconds * 1_000).toISOString() },
    components: sorted<Component>(bom.components),
    dependencies: sorted<Component & { readonly dependsOn?: readonly string[] }>(bom.dependencies).map((dependency) =>
      dependency.dependsOn === undefined ? dependency : { ...dependency, dependsOn: dependency.dependsOn.toSorted() },
    ),
  };
  const hex = createHash('sha256').update(JSON.stringify(content)).digest('hex');
  // A UUID of version 8, whose other digits are free (RFC 9562, section 5.8).
  const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  return `${JSON.stringify({ ...content, serialNumber: `urn:uuid:${uuid}` }, null, 2)}\n`;
}

/** A package of `pnpm licenses list --json`. */
interface LicensedPackage {
  readonly name: string;
  readonly versions: readonly string[];
  readonly paths: readonly string[];
  readonly author?: string;
}

/**
 * Returns the licences of packages with their texts. Some packages contain no text: for each licence that they name,
 * the text of another package follows, with a note about the copyright.
 */
export function licenceTexts(byLicence: Readonly<Record<string, readonly LicensedPackage[]>>): string {
  const textOf = (path: string) => {
    const file = readdirSync(path).find((name) => /^(licen[cs]e|copying|unlicense)/i.test(name));
    return file === undefined ? undefined : readFileSync(join(path, file), 'utf8').trim();
  };
  const substitute = (licence: string, author = 'the authors of the package') => {
    const texts = (byLicence[licence] ?? []).flatMap(({ name, paths }) =>
      paths.flatMap((path) => {
        const text = textOf(path);
        return text === undefined ? [] : [{ name, text }];
      }),
    );
    const found = texts[0];
    if (found === undefined)
      return `The package contains no text of ${licence}: see https://spdx.org/licenses/${licence}.`;
    return `The package contains no text of ${licence}. The copyright is that of ${author}, not the one in this text, which is from ${found.name}:\n\n${found.text}`;
  };
  const sections = Object.entries(byLicence).flatMap(([licence, packages]) =>
    packages.flatMap(({ name, versions, paths, author }) =>
      paths.map((path, index) => {
        const named = licence.replaceAll(/[()]/g, '').split(/ AND | OR /);
        const text = textOf(path) ?? named.map((each) => substitute(each, author)).join('\n\n');
        return `${name} ${versions[index] ?? ''}: ${licence}\n\n${text}\n`;
      }),
    ),
  );
  return sections.toSorted().join(`\n${'-'.repeat(80)}\n\n`);
}
