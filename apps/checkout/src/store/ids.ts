import { randomBytes } from 'node:crypto';
import { randomBase62 } from '@order-gateway/domain/accounts';

/** Returns an identifier with 131 random bits. */
export const newId = (prefix: string) => `${prefix}_${randomBase62(22, randomBytes)}`;
