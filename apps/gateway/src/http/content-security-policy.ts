import { hash } from 'node:crypto';

/**
 * Allows the one style sheet that is part of a page, named by its hash, and nothing else: no script, no frame, and no form unless
 * `formAction` says where to.
 */
export function contentSecurityPolicy(styleSheet: string, formAction = "'none'"): string {
  const style = `'sha256-${hash('sha256', styleSheet, 'base64')}'`;
  return `default-src 'none'; style-src ${style}; base-uri 'none'; form-action ${formAction}; frame-ancestors 'none'`;
}
