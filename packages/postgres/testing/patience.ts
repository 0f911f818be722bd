/**
 * Multiplies the product's own time limits in tests that are not about them. Otherwise a busy machine would make a
 * gateway respond with 503 or 504.
 */
export const testPatience = 100;
