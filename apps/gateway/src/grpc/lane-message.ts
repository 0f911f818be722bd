import type { ServerHttp2Stream } from 'node:http2';
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { messageBytesMax } from '../limits.ts';
import { createEnvelopeReader, type Envelope } from './lane-envelopes.ts';

/** The lowest bit of an envelope's flags: the message is compressed. Connect passes over the other bits, and so do we. */
const compressedFlag = 0b1;

/**
 * Reads the one message of a unary call. Rejects with what Connect would answer: at the first byte that shows the fault, where
 * Connect does so too, else at the end of the body. Never settles when the stream is closed before that.
 */
export function readMessage<Schema extends DescMessage>(
  stream: ServerHttp2Stream,
  schema: Schema,
): Promise<MessageShape<Schema>> {
  return new Promise((resolve, reject) => {
    const reader = createEnvelopeReader(messageBytesMax);
    let message: MessageShape<Schema> | undefined;
    const refuse = (error: unknown) => {
      stream.off('data', take);
      stream.off('end', finish);
      stream.pause();
      reject(error);
    };
    const take = (chunk: Uint8Array) => {
      try {
        for (const envelope of reader.push(chunk)) {
          const decoded = decode(schema, envelope);
          if (message !== undefined) throw unimplemented('received extra input message for unary method');
          message = decoded;
        }
      } catch (error) {
        refuse(error);
      }
    };
    const finish = () => {
      if (reader.isCut()) refuse(new ConnectError('protocol error: incomplete envelope', Code.InvalidArgument));
      else if (message === undefined) refuse(unimplemented('missing input message for unary method'));
      else resolve(message);
      // Node.js keeps a stream and its listeners past the next small collections of garbage; the message need not stay with them.
      message = undefined;
    };
    stream.on('data', take);
    stream.on('end', finish);
  });
}

function decode<Schema extends DescMessage>(schema: Schema, { flags, data }: Envelope): MessageShape<Schema> {
  if ((flags & compressedFlag) === compressedFlag) {
    throw new ConnectError('received compressed envelope, but do not know how to decompress', Code.Internal);
  }
  try {
    return fromBinary(schema, data);
  } catch (error) {
    throw new ConnectError(`parse binary: ${error instanceof Error ? error.message : String(error)}`, Code.Internal);
  }
}

function unimplemented(fault: string): ConnectError {
  return new ConnectError(`protocol error: ${fault}`, Code.Unimplemented);
}
