import type { Readable } from 'node:stream';
import type { Failure } from '@order-gateway/domain/failure';
import { largeBodyBytes, largeBodyBytesPerTurn, messageBytesMax as usualMessageBytesMax } from '../../limits.ts';
import { storageFailure } from '../store-failure.ts';

/**
 * One byte of flags and four of length before a message (github.com/grpc/grpc, PROTOCOL-HTTP2,
 * Length-Prefixed-Message).
 */
export const envelopePrefixBytes = 5;

export type CallBody = Buffer | 'too_large' | 'deadline_exceeded' | 'overloaded' | 'aborted';

/** Reads the body of a call, up to one message of the maximum size. Bytes after that are read and dropped. */
export type ReadBody = ReturnType<typeof createBodyReader>;

/** A body that is being read. */
export interface BodyReading {
  /**
   * Resolves to the body once it is complete, or to the reason why it can't be used. Until the promise resolves, even a
   * complete body may be dropped.
   */
  take(): Promise<CallBody>;
}

/** The form of a body. */
export interface BodyForm {
  /** Whether the message in the body has an envelope prefix. */
  readonly hasEnvelope: boolean;
  /** The maximum size of the message in bytes; absent: the usual limit. */
  readonly messageBytesMax?: number | undefined;
}

interface ReadOptions extends BodyForm {
  /** Absent: the server limits the time. */
  readonly timeoutMs?: number;
}

/** Returns the maximum size of a body in bytes. */
export function bodyBytesMax({ hasEnvelope, messageBytesMax = usualMessageBytesMax }: BodyForm): number {
  return hasEnvelope ? envelopePrefixBytes + messageBytesMax : messageBytesMax;
}

/**
 * Small chunks are slices of larger read buffers and keep those in memory. At this count, the chunks are joined, which
 * releases the buffers.
 */
const chunksMax = 64;

/**
 * Creates the reader for the bodies of all calls, which limits their total memory. Above the limit, the oldest bodies
 * are dropped, and their calls are `overloaded`. The oldest bodies belong to clients that send slowly, because complete
 * bodies are taken immediately. Large bodies are handed to their calls a few at a time, so that hundreds of connections
 * that send large bodies don't stall the rest.
 */
export function createBodyReader(bytesOfAllMax: number) {
  /** The functions that drop the bodies not handed to a call yet, oldest first. */
  const untaken = new Set<() => void>();
  let bytesOfAll = 0;
  const takeTurns = createTurns(largeBodyBytesPerTurn);

  return (stream: Readable, { timeoutMs, ...form }: ReadOptions): BodyReading => {
    const { hasEnvelope } = form;
    const bytesMax = bodyBytesMax(form);
    const { promise, resolve } = Promise.withResolvers<CallBody>();
    let chunks: Buffer[] = [];
    let length = 0;
    let result: CallBody | undefined;
    let isWanted = false;
    const joined = () => (chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    const release = () => {
      chunks = [];
      bytesOfAll -= length;
      length = 0;
      untaken.delete(drop);
    };
    const finish = (body: CallBody) => {
      clearTimeout(timer);
      result = body;
      if (typeof body === 'string') release();
      if (isWanted) handOver(body);
    };
    const handOver = (body: CallBody) => {
      if (length > largeBodyBytes) {
        takeTurns(() => {
          const bytes = length;
          release();
          resolve(body);
          return bytes;
        });
      } else {
        release();
        resolve(body);
      }
    };
    const drop = () => finish('overloaded');
    const timer = timeoutMs === undefined ? undefined : setTimeout(finish, Math.max(0, timeoutMs), 'deadline_exceeded');
    untaken.add(drop);
    stream.on('data', (chunk: Buffer) => {
      if (result !== undefined) return;
      const isStart = length < envelopePrefixBytes;
      chunks.push(chunk);
      length += chunk.length;
      bytesOfAll += chunk.length;
      if (chunks.length === chunksMax) chunks = [joined()];
      const announced = hasEnvelope && isStart ? envelopePrefixBytes + announcedLength(joined()) : 0;
      if (Math.max(length, announced) > bytesMax) finish('too_large');
      for (const dropOldest of untaken) {
        if (bytesOfAll <= bytesOfAllMax) break;
        dropOldest();
      }
    });
    stream.on('end', () => result ?? finish(joined()));
    stream.on('error', () => result ?? finish('aborted'));
    stream.on('close', () => {
      // In HTTP/1.1, a stream also closes when it has ended normally.
      if (!isWanted || result === undefined) finish('aborted');
    });
    return {
      take(): Promise<CallBody> {
        isWanted = true;
        if (result !== undefined) handOver(result);
        return promise;
      },
    };
  };
}

/**
 * Returns a function that queues a piece of work. Each turn of the event loop runs queued work, oldest first, until the
 * results of the work add up to `perTurn`.
 */
function createTurns(perTurn: number): (work: () => number) => void {
  const waiting: (() => number)[] = [];
  const runTurn = () => {
    for (let done = 0; done < perTurn && waiting.length > 0; ) done += waiting.shift()?.() ?? 0;
    if (waiting.length > 0) setImmediate(runTurn);
  };
  return (work) => {
    if (waiting.push(work) === 1) setImmediate(runTurn);
  };
}

/** Returns the failure of a call whose body was not read to its end. */
export function bodyFailure(body: Exclude<CallBody, Buffer>): Failure {
  if (body === 'too_large') return { kind: 'body_too_large' };
  return body === 'aborted' ? { kind: 'malformed_json', reason: 'The body ended early.' } : storageFailure(body);
}

/** Returns the length that an envelope announces; 0 while its prefix is incomplete. */
export function announcedLength(bytes: Buffer): number {
  return bytes.length < envelopePrefixBytes ? 0 : bytes.readUInt32BE(1);
}
