/** Pieces that are given as they come. Messages come in a few; so do all that ordinary clients send. */
const plainPiecesMax = 32;

/**
 * The same bytes in few pieces, of which the later ones double in size. Connect's readers take a time that grows with the square
 * of the number of pieces: on a message of 64 KiB that was sent byte by byte, the process would work for seconds.
 */
export async function* inGrowingPieces(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  let pieces = 0;
  let bytesGiven = 0;
  let held: Uint8Array[] = [];
  let bytesHeld = 0;
  for await (const piece of body) {
    held.push(piece);
    bytesHeld += piece.length;
    pieces += 1;
    if (pieces > plainPiecesMax && bytesHeld < bytesGiven) continue;
    const given = held.length === 1 ? piece : Buffer.concat(held);
    bytesGiven += bytesHeld;
    held = [];
    bytesHeld = 0;
    yield given;
  }
  if (held.length > 0) yield Buffer.concat(held);
}
