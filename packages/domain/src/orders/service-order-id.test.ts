import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createServiceOrderIds, idBlockSize, serviceOrderIdMax } from './service-order-id.ts';

/** A database sequence of blocks, shared by several processes. */
function createBlockSequence() {
  let reserved = 0;
  return {
    reserve: async () => {
      reserved += 1;
      return reserved;
    },
    reserved: () => reserved,
  };
}

/** Waits until pending promises have settled. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('createServiceOrderIds', () => {
  it('reserves blocks of 10,000 by default', async () => {
    const ids = createServiceOrderIds(async () => 3);

    expect(idBlockSize).toBe(10_000);
    expect(await ids.take()).toBe(20_001);
  });

  it('returns an id synchronously while its block lasts', async () => {
    const ids = createServiceOrderIds(createBlockSequence().reserve, 6);
    await ids.take();

    expect([ids.take(), ids.take(), ids.take(), ids.take(), ids.take()]).toStrictEqual([2, 3, 4, 5, 6]);
  });

  it('continues with the next block, with a gap if another process reserved one', async () => {
    const sequence = createBlockSequence();
    const ids = createServiceOrderIds(sequence.reserve, 2);
    await ids.take();
    await sequence.reserve();

    expect([await ids.take(), await ids.take(), await ids.take()]).toStrictEqual([2, 5, 6]);
  });

  it('returns no id twice and reserves at most one block in advance, for any block size, order of calls and delay of reservations', async () => {
    const bursts = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 6 });
    const delays = fc.array(fc.nat(4), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 9 }), bursts, delays, async (blockSize, sizes, turns) => {
        const sequence = createBlockSequence();
        const reserveLate = async () => {
          const block = await sequence.reserve();
          for (let turn = turns[block % turns.length] ?? 0; turn > 0; turn -= 1) await Promise.resolve();
          return block;
        };
        const ids = createServiceOrderIds(reserveLate, blockSize);
        const taken: Promise<unknown>[] = [];
        for (const size of sizes) {
          for (let call = 0; call < size; call += 1) taken.push(Promise.resolve(ids.take()));
          await Promise.resolve();
        }
        const given = await Promise.all(taken);
        expect(new Set(given).size).toBe(given.length);
        expect(given.every((id) => Number.isSafeInteger(id) && Number(id) >= 1)).toBe(true);
        // At most one block is reserved in advance.
        expect(sequence.reserved()).toBeLessThanOrEqual(Math.ceil(given.length / blockSize) + 1);
      }),
      { numRuns: 200 },
    );
  });

  it('returns no id twice in several processes', async () => {
    const sequence = createBlockSequence();
    const processes = [7, 7, 7].map((blockSize) => createServiceOrderIds(sequence.reserve, blockSize));
    const taken: unknown[] = [];
    for (let round = 0; round < 40; round += 1) {
      taken.push(...(await Promise.all(processes.map((ids) => ids.take()))));
    }

    expect(new Set(taken).size).toBe(120);
  });

  it('reserves the next block once, when half of the current one is used', async () => {
    const sequence = createBlockSequence();
    const ids = createServiceOrderIds(sequence.reserve, 10);
    const reservedAfter: number[] = [];
    for (let id = 1; id <= 10; id += 1) {
      expect(await ids.take()).toBe(id);
      reservedAfter.push(sequence.reserved());
    }

    expect(reservedAfter).toStrictEqual([1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    expect(await ids.take()).toBe(11);
    expect(sequence.reserved()).toBe(2);
  });

  it('reserves one block for all calls that wait for the first block', async () => {
    const sequence = createBlockSequence();
    const ids = createServiceOrderIds(sequence.reserve, 100);
    await Promise.all(Array.from({ length: 40 }, () => ids.take()));

    expect(sequence.reserved()).toBe(1);
  });

  it('rejects all waiting calls if a reservation fails, and recovers at the next call', async () => {
    let fails = true;
    const ids = createServiceOrderIds(async () => {
      if (fails) throw new Error('not reached');
      return 1;
    }, 4);

    const waiting = await Promise.allSettled([ids.take(), ids.take(), ids.take()]);
    expect(waiting.map(({ status }) => status)).toStrictEqual(['rejected', 'rejected', 'rejected']);
    await expect(ids.take()).rejects.toThrow('not reached');
    fails = false;
    expect(await ids.take()).toBe(1);
  });

  it('drops the rest of a block and the next one, even if calls wait for it', async () => {
    const sequence = createBlockSequence();
    const ids = createServiceOrderIds(sequence.reserve, 10);
    for (let id = 1; id <= 6; id += 1) await ids.take();
    expect(sequence.reserved()).toBe(2);

    ids.drop();
    expect([await ids.take(), await ids.take()]).toStrictEqual([21, 22]);
    const late = createServiceOrderIds(sequence.reserve, 10);
    const waiting = late.take();
    late.drop();
    expect(await waiting).toBe(41);
  });

  it('continues with its block if reserving ahead fails, and retries the reservation', async () => {
    const results = [Promise.resolve(1), Promise.reject(new Error('not reached')), Promise.resolve(2)];
    let reservations = 0;
    const ids = createServiceOrderIds(() => {
      reservations += 1;
      return results[reservations - 1] ?? Promise.reject(new Error('reserved too often'));
    }, 4);
    await ids.take();
    expect(ids.take()).toBe(2);

    expect(ids.take()).toBe(3);
    await settled();
    expect(reservations).toBe(2);
    expect(ids.take()).toBe(4);
    expect(reservations).toBe(3);
    expect(await ids.take()).toBe(5);
  });

  it('returns ids up to 2^53 - 1, and accepts the last block that fits', async () => {
    expect(serviceOrderIdMax).toBe(2 ** 53 - 1);
    expect(await createServiceOrderIds(async () => serviceOrderIdMax, 1).take()).toBe(2 ** 53 - 1);
    const lastBlock = Math.floor(serviceOrderIdMax / 10_000);
    expect(await createServiceOrderIds(async () => lastBlock, 10_000).take()).toBe(9_007_199_254_730_001);
  });

  it.each([
    [0, 10],
    [-1, 10],
    [1.5, 10],
    [Number.NaN, 10],
    [2 ** 53, 1],
    [Math.floor(serviceOrderIdMax / 10_000) + 1, 10_000],
  ])(
    'rejects the block %d of %i ids, which has ids outside 1 to 2^53 - 1, and reserves another at the next call',
    async (block, size) => {
      const blocks = [block, 1];
      const ids = createServiceOrderIds(async () => blocks.shift() ?? 2, size);

      await expect(ids.take()).rejects.toThrow(RangeError);
      expect(await ids.take()).toBe(1);
    },
  );
});
