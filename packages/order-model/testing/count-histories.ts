import type { History } from '../src/model.ts';
import { describeUnexplained } from '../src/report.ts';
import { findUnexplained } from '../src/search.ts';
import { goodHistory } from './good-histories.ts';
import { plantedFaults } from './planted-faults.ts';
import { createRandom } from './random.ts';

/** The kinds of planted faults. */
export const faultNames = Object.keys(plantedFaults);

/** How many histories were searched, and how many of them no serial order explains. */
export interface CountedHistories {
  readonly histories: number;
  readonly unexplained: number;
}

/**
 * Counts unexplained histories, either of a correct gateway or with one planted fault in each. Prints the first wrong
 * verdict.
 */
export async function countHistories({
  histories,
  fault,
}: {
  readonly histories: number;
  readonly fault?: string;
}): Promise<CountedHistories> {
  const plant = fault === undefined ? undefined : plantedFaults[fault];
  let [counted, unexplained] = [0, 0];
  for (let seed = 1; counted < histories; seed += 1) {
    const good = await goodHistory(seed);
    const history = plant === undefined ? good : plantIn(good, plant, seed);
    if (history === undefined) continue;
    counted += 1;
    const isExplained = findUnexplained(history) === undefined;
    if (!isExplained) unexplained += 1;
    const wrong = plant === undefined ? unexplained : counted - unexplained;
    if (isExplained === (plant !== undefined) && wrong === 1) {
      process.stdout.write(
        `seed ${seed}: ${isExplained ? JSON.stringify(history, null, 1) : describeUnexplained(history)}\n`,
      );
    }
  }
  return { histories: counted, unexplained };
}

function plantIn({ calls, stored }: History, plant: (typeof plantedFaults)[string], seed: number): History | undefined {
  return stored === null ? undefined : plant({ calls, stored }, createRandom(seed));
}
