/** The advice below a secret that is shown once. */
export const secretNote =
  'This secret will not be shown again. Store it where only the backend that uses it can read it.';

/** Returns the lines with the credentials of a new account. */
export function credentialLines(clientId: string, clientSecret: string): string {
  return `  client id:     ${clientId}\n  client secret: ${clientSecret}\n${secretNote}`;
}
