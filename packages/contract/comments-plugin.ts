import type { DescEnum, DescFile, DescMessage, DescService } from '@bufbuild/protobuf';
import { createEcmaScriptPlugin, getComments, runNodeJs } from '@bufbuild/protoplugin';

/**
 * Generates a table of the comments of all services, messages, enums and their members by full name, because generated
 * descriptors contain no comments.
 */
const plugin = createEcmaScriptPlugin({
  name: 'comments',
  version: '1',
  generateTs({ files, generateFile }) {
    const entries = files
      .filter(({ proto }) => proto.package === 'gateway.v1')
      .flatMap(typesOf)
      .flatMap((type) => [[type.typeName, commentOf(type)], ...membersOf(type)]);
    // buf runs a plugin once for each of its inputs.
    if (entries.length === 0) return;
    const file = generateFile('comments.ts');
    file.print('/** The comments of the contract by full name, such as `gateway.v1.Order.created_at`. */');
    const text = JSON.stringify(Object.fromEntries(entries), undefined, 2);
    file.print(`export const comments: Readonly<Record<string, string>> = ${text};`);
  },
});

type DescType = DescService | DescMessage | DescEnum;

function typesOf({ services, messages, enums }: DescFile): DescType[] {
  return [...services, ...messages, ...enums];
}

function membersOf(type: DescType): [name: string, comment: string][] {
  const members = type.kind === 'service' ? type.methods : type.kind === 'message' ? type.fields : type.values;
  return members.map((member) => [`${type.typeName}.${member.name}`, commentOf(member)]);
}

/** Returns the comment with one line per paragraph and an empty line between paragraphs. */
function commentOf(described: Parameters<typeof getComments>[0]): string {
  const { leading = '' } = getComments(described);
  return leading
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replaceAll(/\s*\n\s*/g, ' '))
    .join('\n\n');
}

runNodeJs(plugin);
