/** How often something may happen: so many times at once, and so many times a second after that. */
export class Budget {
  readonly #burst: number;
  readonly #perSecond: number;
  #left: number;
  #countedAt: number;

  /** `now` is on the clock of `performance.now()`. */
  constructor(burst: number, perSecond: number, now: number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#left = burst;
    this.#countedAt = now;
  }

  /** Gives false where it has happened too often. */
  spend(now: number): boolean {
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#countedAt) / 1_000) * this.#perSecond) - 1;
    this.#countedAt = now;
    return this.#left >= 0;
  }

  /** Allows so many more. */
  earn(count: number): void {
    this.#left = Math.min(this.#burst, this.#left + count);
  }
}
