/** A connection that sends orders as prepared bytes. */
export interface FloodConnection {
  /** Whether one more call can be sent now. */
  readonly isFree: boolean;
  send(onEnd: (isCreated: boolean) => void): void;
  close(): void;
}

const idDigits = 12;
/** The end of every order_id. Its digits change. */
export const idEnd = '0'.repeat(idDigits);

/** Returns a function that gives the order in these bytes an id that is unique on the connection. */
export function renewerOf(bytes: Buffer): () => void {
  const at = bytes.indexOf(idEnd);
  let next = 0;
  return () => {
    bytes.write(String(next).padStart(idDigits, '0'), at, 'latin1');
    next += 1;
  };
}
