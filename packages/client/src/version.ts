/**
 * The version of this package, repeated from package.json because a module that is published in both formats can't
 * import it.
 */
export const version = '1.0.0';
