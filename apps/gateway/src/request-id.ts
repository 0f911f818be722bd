import { type RandomBytes, randomBase62 } from '@gateway/domain/base62';

const callersForm = /^[A-Za-z0-9._-]{1,128}$/;

/** 16 base62 characters, 95 bits: no two requests share one. */
const ownLength = 16;

/** A caller's own request id where it has the form, else a new one. */
export function requestIdOf(sent: string | null | undefined, randomBytes: RandomBytes): string {
  return sent && callersForm.test(sent) ? sent : randomBase62(ownLength, randomBytes);
}
