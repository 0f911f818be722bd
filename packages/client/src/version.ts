/**
 * The version of this package. Repeated from package.json, which the build cannot include because it is outside `src`.
 */
export const version = '1.0.0';
