import { type RandomBytes, randomBase62 } from '../base62.ts';
import type { StoreFailure } from '../result.ts';
import type { Merchant } from './account.ts';

/**
 * What a person may do in the console. With `read`, a person sees the merchant's orders and settings; with `manage`,
 * the person can also change them.
 */
export const consoleRoles = ['read', 'manage'] as const;

/** One of {@link consoleRoles}. */
export type ConsoleRole = (typeof consoleRoles)[number];

/** The limits of the console's sign-in links and sessions, in milliseconds and sessions per merchant. */
export const consoleLimits = {
  linkMs: 900_000,
  sessionMs: 28_800_000,
  idleMs: 3_600_000,
  sessionsMax: 20,
  instructionChangesMax: 10,
} as const;

/** 32 base62 characters are 190 bits, too many to guess. */
const tokenLength = 32;

/** Matches every token of a sign-in link or a session's cookie. */
export const consoleTokenForm = new RegExp(`^[0-9A-Za-z]{${tokenLength}}$`);

/** Returns a new token for a sign-in link or a session's cookie. Only its digest is stored ({@link hashSecret}). */
export function createConsoleToken(randomBytes: RandomBytes): string {
  return randomBase62(tokenLength, randomBytes);
}

/** The person to whom a link or a session belongs. */
export interface ConsoleUser {
  /** Shown in lists and in the audit log, as `console:NAME`. */
  readonly name: string;
  readonly role: ConsoleRole;
}

/** A person signed in by an identity provider, and the merchant for whom the person acts. */
export interface ConsolePerson extends ConsoleUser {
  readonly clientId: string;
}

/** A session of the console. */
export interface ConsoleSession extends ConsoleUser {
  /** Positive, unique among all sessions. */
  readonly id: number;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly createdAtMs: number;
  /** When the session was last used, to the minute. */
  readonly lastSeenAtMs: number;
}

/** A live session with its merchant. */
export interface FoundConsoleSession {
  readonly merchant: Merchant;
  readonly clientId: string;
  readonly session: ConsoleSession;
}

/** An action of a person, for the audit log. */
export interface ConsoleAction {
  /** Such as `order.cancel`. */
  readonly name: string;
  /** Never a secret or a customer's data. */
  readonly details: Readonly<Record<string, string>>;
}

/** A change of a merchant's payment instructions, from the audit log. */
export interface InstructionChange {
  readonly createdAtMs: number;
  /** Who changed them: a person in the console (`console:` and the name), the merchant's client id, or an operator. */
  readonly actor: string;
  /** Empty if they were removed. */
  readonly instructions: string;
}

/** The sessions to end: the caller's own, another one of the merchant by its id, or all of the merchant. */
export type EndedSessions = 'own' | 'all' | { readonly other: number };

/**
 * Stores the sessions and one-time links of the console. Its methods receive digests of tokens, and complete within
 * `timeoutMs`. Their value is `undefined` if the link or the session does not exist, has ended, or does not have the
 * required role.
 */
export interface ConsoleSessionStore {
  /**
   * Lists the latest changes of a merchant's payment instructions, newest first. The caller has found its session.
   */
  listInstructionChanges(clientId: string, timeoutMs: number): Promise<FoundOutcome<readonly InstructionChange[]>>;
  /**
   * Starts a session for a one-time link, which then no longer works, or for a person. Ends the session that it
   * replaces in the browser. Also ends sessions of the merchant so that at most `sessionsMax` remain: a person's older
   * sessions before other people's only ones, and the least recently used ones first.
   */
  signIn(
    by: Uint8Array | ConsolePerson,
    sessionDigest: Uint8Array,
    replacedDigest: Uint8Array | undefined,
    timeoutMs: number,
  ): Promise<FoundOutcome<true>>;
  /** Finds a live session, and records that it is used. */
  find(sessionDigest: Uint8Array, timeoutMs: number): Promise<FoundOutcome<FoundConsoleSession>>;
  /**
   * Creates a one-time link for a colleague, as the user of a session with the role `manage`. The link no longer works
   * once the session has ended.
   */
  createLink(
    sessionDigest: Uint8Array,
    linkDigest: Uint8Array,
    colleague: ConsoleUser,
    timeoutMs: number,
  ): Promise<FoundOutcome<true>>;
  /** Lists the live sessions of the merchant to which a session belongs, newest first. */
  list(sessionDigest: Uint8Array, timeoutMs: number): Promise<FoundOutcome<readonly ConsoleSession[]>>;
  /**
   * Ends the caller's own session. With the role `manage`, the caller can also end the session with the id `other`, or
   * all sessions and links of the merchant.
   */
  end(sessionDigest: Uint8Array, which: EndedSessions, timeoutMs: number): Promise<FoundOutcome<true>>;
  /**
   * Records an action of a session with the role `manage` in the audit log. The entry is stored before the action is
   * attempted, so that no action lacks an entry.
   */
  record(sessionDigest: Uint8Array, action: ConsoleAction, timeoutMs: number): Promise<FoundOutcome<true>>;
}

/** The outcome of a statement about a session or link. */
export type FoundOutcome<Found> = { readonly kind: 'done'; readonly value: Found | undefined } | StoreFailure;
