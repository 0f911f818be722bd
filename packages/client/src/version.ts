/** The version of this package: that of package.json, which a module in both formats can't import. */
export const version = '1.0.0';
