import { randomInt, randomUUID } from 'node:crypto';
import postgres from 'postgres';
import { columnTypes, firstPeerId, insertFrom, onConflictDoNothing, rowOf } from '../order.ts';

// A batch has at most 128 rows: the gateway's larger batches help only under overload, which the bench does not cause.
// As in the gateway, 2 batches can be in flight. If fewer are in flight, a batch is sent as soon as 16 rows are
// waiting.
const batchRowsMax = 128;
const inFlightMax = 2;
const immediateRows = 16;

const types = Object.values(columnTypes);
const insertOne = insertFrom(`select ${types.map((type, index) => `$${index + 1}::${type}`).join(', ')}`);
const insertMany = insertFrom(
  `select * from unnest(${types.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`,
);

/** Returns a function that inserts an order. Like the gateway, it uses prepared statements and batches. */
export function createBareInsert(url: string, merchantId: number): () => Promise<void> {
  const sql = postgres(url, { max: 1, fetch_types: false });
  const waiting: { readonly row: string[]; readonly resolve: () => void }[] = [];
  let inFlight = 0;
  let isScheduled = false;
  let serviceOrderId = firstPeerId + randomInt(2 ** 47);

  const flush = async () => {
    isScheduled = false;
    if (inFlight === inFlightMax || waiting.length === 0) return;
    inFlight += 1;
    const batch = waiting.splice(0, batchRowsMax);
    const [first] = batch;
    const isLone = batch.length === 1 && first !== undefined;
    const arrays = () => types.map((_, column) => `{${batch.map(({ row }) => JSON.stringify(row[column])).join()}}`);
    const statement = `${isLone ? insertOne : insertMany} ${onConflictDoNothing}`;
    await sql.unsafe(statement, isLone ? first.row : arrays(), { prepare: true });
    inFlight -= 1;
    for (const { resolve } of batch) resolve();
    void flush();
  };

  return () => {
    serviceOrderId += 1;
    const [orderToken, orderId] = [randomUUID(), `bare-${serviceOrderId}`];
    const row = rowOf({ merchantId, serviceOrderId, orderToken, orderId });
    return new Promise((resolve) => {
      waiting.push({ row, resolve });
      if (waiting.length >= immediateRows) void flush();
      else if (!isScheduled) {
        isScheduled = true;
        setImmediate(flush);
      }
    });
  };
}
