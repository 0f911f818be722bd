/**
 * How many bits the code of each byte has, and last that of the end of a string (RFC 7541, appendix B). The codes themselves
 * follow: those of one length count up from byte to byte, and the next longer ones go on from there.
 */
// biome-ignore format: sixteen bytes a line
const codeLengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];

const endOfString = 256;
const codeLengthMax = 30;

/** What is left of a byte after the last code has only ones, and fewer than eight (RFC 7541, 5.2). */
const paddingBitsMax = 7;

interface Node {
  readonly state: number;
  readonly depth: number;
  /** Whether only ones lead here. */
  readonly isPadding: boolean;
  /** Per bit: the way on, or the byte that it completes. */
  readonly children: [Node | number | undefined, Node | number | undefined];
}

const failed = 0xffff;
const nothing = -1;

/** Half a byte leads from a state to the next, and completes one byte at the most: no code is shorter than five bits. */
const { nextStates, completed, mayEnd } = tablesOf(codeTree());

function codeTree(): readonly Node[] {
  const nodes: Node[] = [];
  const add = (depth: number, isPadding: boolean): Node => {
    const node: Node = { state: nodes.length, depth, isPadding, children: [undefined, undefined] };
    nodes.push(node);
    return node;
  };
  const root = add(0, true);
  let code = 0;
  for (let length = 1; length <= codeLengthMax; length += 1) {
    for (let symbol = 0; symbol <= endOfString; symbol += 1) {
      if (codeLengths[symbol] !== length) continue;
      let node = root;
      for (let place = length - 1; place > 0; place -= 1) {
        const bit = bitOf(code, place);
        const child = node.children[bit] ?? add(node.depth + 1, node.isPadding && bit === 1);
        if (typeof child === 'number') throw new Error(`the code of ${symbol} begins with that of ${child}`);
        node.children[bit] = child;
        node = child;
      }
      node.children[bitOf(code, 0)] = symbol;
      code += 1;
    }
    code *= 2;
  }
  return nodes;
}

function bitOf(code: number, place: number): 0 | 1 {
  return ((code >> place) & 1) === 1 ? 1 : 0;
}

function tablesOf(nodes: readonly Node[]) {
  const nextStates = new Uint16Array(nodes.length * 16).fill(failed);
  const completed = new Int16Array(nodes.length * 16).fill(nothing);
  for (const start of nodes) {
    for (let nibble = 0; nibble < 16; nibble += 1) {
      let node: Node | undefined = start;
      for (let place = 3; place >= 0 && node !== undefined; place -= 1) {
        const child: Node | number | undefined = node.children[bitOf(nibble, place)];
        if (typeof child === 'number' && child !== endOfString) completed[start.state * 16 + nibble] = child;
        node = child === endOfString ? undefined : typeof child === 'number' ? nodes[0] : child;
      }
      if (node !== undefined) nextStates[start.state * 16 + nibble] = node.state;
    }
  }
  const mayEnd = nodes.map(({ isPadding, depth }) => isPadding && depth <= paddingBitsMax);
  return { nextStates, completed, mayEnd };
}

/** The text of Huffman-coded bytes, a character a byte; undefined where they are no code (RFC 7541, 5.2). */
export function decodeHuffman(coded: Uint8Array): string | undefined {
  // No code is shorter than five bits.
  const decoded = Buffer.allocUnsafe(Math.floor((coded.length * 8) / 5));
  let length = 0;
  let state = 0;
  for (const byte of coded) {
    for (let shift = 4; shift >= 0; shift -= 4) {
      const place = state * 16 + ((byte >> shift) & 0xf);
      const symbol = completed[place] ?? nothing;
      if (symbol !== nothing) {
        decoded[length] = symbol;
        length += 1;
      }
      state = nextStates[place] ?? failed;
      if (state === failed) return undefined;
    }
  }
  return mayEnd[state] === true ? decoded.toString('latin1', 0, length) : undefined;
}
