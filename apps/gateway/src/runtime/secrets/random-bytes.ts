import { randomFillSync } from 'node:crypto';
import type { RandomBytes } from '@order-gateway/domain/accounts';

/**
 * One call of the system's random source serves about 250 tokens, which was measured to be 20 times cheaper than one
 * call per token.
 */
const poolBytes = 8_192;

/**
 * Creates a reader that reads the system's random source in bulk. No byte is returned twice. The returned array is
 * valid only until the next call.
 */
export function createRandomBytes(): RandomBytes {
  const pool = new Uint8Array(poolBytes);
  let used = poolBytes;
  return (count) => {
    if (count > poolBytes) return randomFillSync(new Uint8Array(count));
    if (used + count > poolBytes) {
      randomFillSync(pool);
      used = 0;
    }
    used += count;
    return pool.subarray(used - count, used);
  };
}
