import { flags, frame, frameTypes, preface } from '../src/frames.ts';
import { dataFrame, headersFrame, hello } from './raw-client.ts';
import {
  block,
  bytes,
  differs,
  end,
  full,
  get,
  held,
  opening,
  ping,
  priority,
  reset,
  row,
  type Sequence,
  uint32,
  whole,
  windowUpdate,
} from './sequence.ts';

/** What RFC 9113 has in its sections 3 to 5. */
export const connectionSequences: readonly Sequence[] = [
  // RFC 9113, 3.4
  row('nothing', 'a preface and settings', [hello]),
  row('goaway protocolError', 'no settings first', [preface, ping()]),
  row('goaway protocolError', 'a request before the settings', [preface, headersFrame(1, get)]),
  row('goaway protocolError', 'an acknowledgment first', [preface, frame(frameTypes.settings, flags.ack, 0, bytes())]),
  // 4.1
  row('1: 200', 'a frame of an unknown type', [hello, frame(0xee, 0xff, 0, full), headersFrame(1, get)]),
  row('1: 200', 'a frame of an unknown type on an idle stream', [
    hello,
    frame(0xee, 0xff, 7, full),
    headersFrame(1, get),
  ]),
  row('1: 200, pong pingpong', 'flags that have no meaning', [hello, ping(0xfe), headersFrame(1, get, whole | 0xd2)]),
  row('1: 200', 'the reserved bit of a stream', [hello, headersFrame(0x8000_0001, get)]),
  // 4.2
  row('1: 200', 'the largest frame', [hello, opening(1), dataFrame(1, full)]),
  row('goaway frameSizeError', 'too large a frame of data', [hello, opening(1), dataFrame(1, Buffer.alloc(16_385))]),
  row('goaway frameSizeError', 'too large a frame of headers', [
    hello,
    frame(frameTypes.headers, whole, 1, Buffer.alloc(16_385)),
  ]),
  row('goaway frameSizeError', 'too large a frame of settings', [
    hello,
    frame(frameTypes.settings, 0, 0, Buffer.alloc(16_386)),
  ]),
  row('goaway frameSizeError', 'too large a frame of an unknown type', [
    hello,
    frame(0xee, 0, 0, Buffer.alloc(16_385)),
  ]),
  // 4.3
  row('goaway compressionError', 'a header block that is no code', [
    hello,
    frame(frameTypes.headers, whole, 1, bytes(0xff, 0xff, 0xff, 0xff, 0xff, 0xff)),
  ]),
  row('goaway compressionError', 'an index that stands for nothing', [
    hello,
    frame(frameTypes.headers, whole, 1, bytes(0x82, 0xfe)),
  ]),
  row('goaway compressionError', 'too large a header table', [
    hello,
    frame(frameTypes.headers, whole, 1, bytes(0x3f, 0xe2, 0x1f, ...block)),
  ]),
  row('1: 200', 'a smaller header table', [hello, frame(frameTypes.headers, whole, 1, bytes(0x20, ...block))]),
  row('goaway compressionError', 'a change of the header table after a field', [
    hello,
    frame(frameTypes.headers, whole, 1, bytes(...block, 0x20)),
  ]),
  row('goaway protocolError', 'a header block without its end, and another frame', [
    hello,
    frame(frameTypes.headers, end, 1, block),
    dataFrame(1, full),
  ]),
  row('goaway protocolError', 'a header block without its end, and a frame of another stream', [
    hello,
    frame(frameTypes.headers, end, 1, block),
    headersFrame(3, get),
  ]),
  row('goaway protocolError', 'a header block without its end, and a frame of an unknown type', [
    hello,
    frame(frameTypes.headers, end, 1, block),
    frame(0xee, 0, 1, full),
  ]),
  // 5.1
  row('goaway protocolError', 'data on an idle stream', [hello, dataFrame(1, full)]),
  row('goaway protocolError', 'a reset of an idle stream', [hello, reset(1)]),
  row('goaway protocolError', 'a window update of an idle stream', [hello, windowUpdate(1, 1)]),
  row('1: 200', 'a priority of an idle stream', [hello, priority(3), headersFrame(1, get)]),
  row(
    differs('1: streamClosed', 'goaway streamClosed', "the fault is the stream's alone"),
    'data on a half-closed stream',
    [hello, headersFrame(1, held), dataFrame(1, bytes(1))],
  ),
  row(
    differs('1: streamClosed', 'goaway streamClosed', "the fault is the stream's alone"),
    'headers on a half-closed stream',
    [hello, headersFrame(1, held), headersFrame(1, ['x-more', '1'])],
  ),
  row('nothing', 'a window update of a half-closed stream', [hello, headersFrame(1, held), windowUpdate(1, 1)]),
  row('nothing', 'a reset of a half-closed stream', [hello, headersFrame(1, held), reset(1)]),
  row('nothing', 'data after a reset', [hello, opening(1), reset(1), dataFrame(1, bytes(1))]),
  row(
    differs('goaway protocolError', 'nothing', 'a number is used once (5.1.1), and who is passed over waits'),
    'a request on a stream that was reset',
    [hello, opening(1), reset(1), headersFrame(1, get)],
  ),
  row('nothing', 'trailers after a reset', [hello, opening(1), reset(1), headersFrame(1, ['x-more', '1'])]),
  row('nothing', 'a window update after a reset', [hello, opening(1), reset(1), windowUpdate(1, 1)]),
  row('nothing', 'a second reset', [hello, opening(1), reset(1), reset(1)]),
  // 5.1.1
  row('goaway protocolError', 'an even stream', [hello, headersFrame(2, get)]),
  row(differs('5: 200, goaway protocolError', '5: 200', 'its number has to be larger (5.1.1)'), 'a decreasing stream', [
    hello,
    headersFrame(5, get),
    headersFrame(3, get),
  ]),
  row('5: 200, 9: 200', 'skipped streams', [hello, headersFrame(5, get), headersFrame(9, get)]),
  row('goaway protocolError', 'data of a stream that only a server begins', [
    hello,
    headersFrame(5, held),
    dataFrame(2, bytes(1)),
  ]),
  row('goaway protocolError', 'a reset of a stream that only a server begins', [
    hello,
    headersFrame(5, held),
    reset(2),
  ]),
  row('goaway protocolError', 'a window update of a stream that only a server begins', [
    hello,
    headersFrame(5, held),
    windowUpdate(2, 1),
  ]),
  row('1: 200', 'a priority of a stream that only a server begins', [hello, priority(2), headersFrame(1, get)]),
  row('2147483647: 200', 'the last stream', [hello, headersFrame(0x7fff_ffff, get)]),
  row('nothing', 'data on a skipped stream', [hello, headersFrame(5, held), dataFrame(3, bytes(1))]),
  // 5.1.2
  row('7: refusedStream', 'too many streams', [hello, ...[1, 3, 5, 7].map((id) => headersFrame(id, held))]),
  // 5.3.1
  row('1: 200', 'a stream that depends on itself', [hello, opening(1), priority(1, 5, 1), dataFrame(1, bytes(1))]),
  row(
    differs('1: 200', 'goaway protocolError', 'priorities mean nothing any more (5.3.2)'),
    'headers that depend on themselves',
    [hello, frame(frameTypes.headers, whole | flags.priority, 1, Buffer.concat([uint32(1), bytes(0), block]))],
  ),
  row('1: 200', 'headers with a priority', [
    hello,
    frame(frameTypes.headers, whole | flags.priority, 1, Buffer.concat([uint32(0x8000_0003), bytes(0), block])),
  ]),
  row('goaway frameSizeError', 'headers with a cut priority', [
    hello,
    frame(frameTypes.headers, whole | flags.priority, 1, bytes(0, 0, 0, 0)),
  ]),
];
