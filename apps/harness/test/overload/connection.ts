/** A connection that sends orders as prepared bytes. */
export interface FloodConnection {
  /** Whether one more call can be sent now. */
  readonly isFree: boolean;
  send(onEnd: (isCreated: boolean) => void): void;
  close(): void;
}

const idDigits = 12;
/** The placeholder for the last digits of an order_id, which differ in each call. */
export const idEnd = '0'.repeat(idDigits);

/** Returns a function that writes a new order_id, unique on the connection, into the order in these bytes. */
export function renewerOf(bytes: Buffer): () => void {
  const offset = bytes.indexOf(idEnd);
  let next = 0;
  return () => {
    bytes.write(String(next).padStart(idDigits, '0'), offset, 'latin1');
    next += 1;
  };
}
