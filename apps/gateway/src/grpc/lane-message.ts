import { Code, ConnectError } from '@connectrpc/connect';
import { messageBytesMax } from '../limits.ts';
import { type Envelope, EnvelopeReader } from './lane-envelopes.ts';

/** The lowest bit of an envelope's flags: the message is compressed. Connect passes over the other bits, and so do we. */
const compressedFlag = 0b1;

/** Reads the one message of a unary call out of the pieces of its body. */
export class MessageReading<Message extends object> {
  readonly #decode: (data: Buffer) => Message;
  readonly #settling = Promise.withResolvers<Message>();
  readonly #envelopes = new EnvelopeReader(messageBytesMax);
  #decoded: Message | undefined;
  #isRefused = false;

  /** `decode` throws at what is no message. */
  constructor(decode: (data: Buffer) => Message) {
    this.#decode = decode;
  }

  /**
   * Rejects with what Connect would answer: at the first byte that shows the fault, where Connect does so too, else at the end
   * of the body. Never settles when the body does not come to its end.
   */
  message(): Promise<Message> {
    return this.#settling.promise;
  }

  /** Takes a piece of the body; of one that was refused nothing more is read. */
  take(chunk: Buffer): 'taken' | 'refused' {
    if (this.#isRefused) return 'taken';
    try {
      for (const envelope of this.#envelopes.push(chunk)) {
        const decoded = opened(this.#decode, envelope);
        if (this.#decoded !== undefined) throw unimplemented('received extra input message for unary method');
        this.#decoded = decoded;
      }
      return 'taken';
    } catch (error) {
      this.#refuse(error);
      return 'refused';
    }
  }

  /** The body is at its end. */
  finish(): void {
    if (this.#isRefused) return;
    if (this.#envelopes.isCut()) {
      this.#refuse(new ConnectError('protocol error: incomplete envelope', Code.InvalidArgument));
    } else if (this.#decoded === undefined) this.#refuse(unimplemented('missing input message for unary method'));
    else this.#settling.resolve(this.#decoded);
  }

  #refuse(error: unknown): void {
    this.#isRefused = true;
    this.#settling.reject(error);
  }
}

function opened<Message>(decode: (data: Buffer) => Message, { flags, data }: Envelope): Message {
  if ((flags & compressedFlag) === compressedFlag) {
    throw new ConnectError('received compressed envelope, but do not know how to decompress', Code.Internal);
  }
  try {
    return decode(data);
  } catch (error) {
    throw new ConnectError(`parse binary: ${error instanceof Error ? error.message : String(error)}`, Code.Internal);
  }
}

function unimplemented(fault: string): ConnectError {
  return new ConnectError(`protocol error: ${fault}`, Code.Unimplemented);
}
