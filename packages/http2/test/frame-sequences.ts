import { defaultWindow, flags, frame, frameTypes, largestWindow, settingsFrame } from '../src/frames.ts';
import { dataFrame, headersFrame, hello } from './raw-client.ts';
import {
  block,
  bytes,
  cut,
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
  setting,
  uint32,
  whole,
  windowUpdate,
} from './sequence.ts';

/** What RFC 9113 has in its section 6. */
export const frameSequences: readonly Sequence[] = [
  // 6.1
  row('goaway protocolError', 'data of no stream', [hello, dataFrame(0, bytes(1))]),
  row('1: 200', 'data with padding', [hello, opening(1), dataFrame(1, bytes(2, 1, 0, 0), end | flags.padded)]),
  row('1: 200', 'data that are padding alone', [
    hello,
    opening(1),
    dataFrame(1, bytes(3, 0, 0, 0), end | flags.padded),
  ]),
  row('goaway protocolError', 'padding as long as the frame of data', [
    hello,
    opening(1),
    dataFrame(1, bytes(4, 0, 0, 0), end | flags.padded),
  ]),
  row('goaway protocolError', 'data with padding and no length of it', [
    hello,
    opening(1),
    dataFrame(1, bytes(), end | flags.padded),
  ]),
  // 6.2
  row('goaway protocolError', 'headers of no stream', [hello, headersFrame(0, get)]),
  row('1: 200', 'headers with padding', [
    hello,
    frame(frameTypes.headers, whole | flags.padded, 1, bytes(2, ...block, 0, 0)),
  ]),
  row('goaway protocolError', 'padding as long as the frame of headers', [
    hello,
    frame(frameTypes.headers, whole | flags.padded, 1, bytes(block.length + 1, ...block)),
  ]),
  row('1: 200', 'headers with padding and a priority', [
    hello,
    frame(frameTypes.headers, whole | flags.padded | flags.priority, 1, bytes(2, 0, 0, 0, 0, 9, ...block, 0, 0)),
  ]),
  row('goaway protocolError', 'padding that covers the priority', [
    hello,
    frame(frameTypes.headers, whole | flags.padded | flags.priority, 1, bytes(3, 0, 0, 0, 0, 9, 0)),
  ]),
  // 6.3
  row(differs('goaway protocolError', 'nothing', 'it has to be a connection error (6.3)'), 'a priority of no stream', [
    hello,
    priority(0),
  ]),
  row('goaway frameSizeError', 'a priority of a wrong length', [hello, priority(1, 4)]),
  // 6.4
  row('goaway protocolError', 'a reset of no stream', [hello, reset(0)]),
  row('goaway frameSizeError', 'a reset of a wrong length', [
    hello,
    headersFrame(1, held),
    frame(frameTypes.resetStream, 0, 1, bytes(0, 0, 8)),
  ]),
  // 6.5
  row('goaway protocolError', 'settings of a stream', [hello, frame(frameTypes.settings, 0, 1, bytes())]),
  row('goaway frameSizeError', 'cut settings', [hello, frame(frameTypes.settings, 0, 0, bytes(0, 4, 0, 0, 0))]),
  row('goaway frameSizeError', 'an acknowledgment that says something', [
    hello,
    frame(frameTypes.settings, flags.ack, 0, bytes(0, 4, 0, 0, 0, 1)),
  ]),
  row('goaway protocolError', 'pushes that are neither on nor off', [hello, setting(2, 2)]),
  row('goaway flowControlError', 'too large a window for streams', [hello, setting(4, 0x8000_0000)]),
  row('1: 200', 'the largest window for streams', [hello, setting(4, largestWindow), headersFrame(1, get)]),
  row('goaway protocolError', 'too small frames', [hello, setting(5, 16_383)]),
  row('goaway protocolError', 'too large frames', [hello, setting(5, 0x100_0000)]),
  row('1: 200', 'the largest frames', [hello, setting(5, 0xff_ffff), headersFrame(1, get)]),
  row('1: 200', 'a setting that is not known', [hello, setting(0xeeee, 1), headersFrame(1, get)]),
  row(differs('nothing', 'goaway protocolError', 'it does no harm, and is counted'), 'an acknowledgment of nothing', [
    hello,
    frame(frameTypes.settings, flags.ack, 0, bytes()),
    frame(frameTypes.settings, flags.ack, 0, bytes()),
  ]),
  row('goaway enhanceYourCalm', '33 settings at once', [
    hello,
    settingsFrame(Array.from({ length: 33 }, () => [6, 1])),
  ]),
  // 6.6
  row('goaway protocolError', 'a push by a client', [
    hello,
    opening(1),
    frame(frameTypes.pushPromise, flags.endHeaders, 1, Buffer.concat([uint32(2), block])),
  ]),
  // 6.7
  row('pong pingpong', 'a ping', [hello, ping()]),
  row(differs('nothing', 'goaway internalError', 'it does no harm, and is counted'), 'a ping that acknowledges', [
    hello,
    ping(flags.ack),
  ]),
  row('goaway protocolError', 'a ping of a stream', [hello, ping(0, Buffer.alloc(8), 1)]),
  row('goaway frameSizeError', 'a ping of a wrong length', [hello, ping(0, Buffer.alloc(7))]),
  // 6.8
  row('goaway protocolError', 'a farewell of a stream', [hello, frame(frameTypes.goAway, 0, 1, Buffer.alloc(8))]),
  row('goaway frameSizeError', 'a cut farewell', [hello, frame(frameTypes.goAway, 0, 0, Buffer.alloc(7))]),
  row(
    differs('1: 200', '1: 200, goaway noError, goaway noError', 'the client ends the connection itself'),
    'a farewell while a request is under way',
    [hello, opening(1), frame(frameTypes.goAway, 0, 0, Buffer.alloc(8)), dataFrame(1, bytes(1))],
  ),
  // 6.9
  row('goaway protocolError', 'a window update of nothing', [hello, windowUpdate(0, 0)]),
  row(
    differs('1: protocolError', 'goaway protocolError', "the fault is the stream's alone (6.9)"),
    'a window update of nothing for a stream',
    [hello, headersFrame(1, held), windowUpdate(1, 0)],
  ),
  row('goaway frameSizeError', 'a window update of a wrong length', [
    hello,
    frame(frameTypes.windowUpdate, 0, 0, bytes(0, 0, 1)),
  ]),
  row('goaway flowControlError', 'too large a window', [
    hello,
    windowUpdate(0, largestWindow - defaultWindow),
    windowUpdate(0, 1),
  ]),
  row('1: 200', 'the largest window', [hello, windowUpdate(0, largestWindow - defaultWindow), headersFrame(1, get)]),
  row(
    differs('1: flowControlError', 'goaway flowControlError', "the fault is the stream's alone (6.9.1)"),
    'too large a window of a stream',
    [hello, headersFrame(1, held), windowUpdate(1, largestWindow)],
  ),
  row('goaway flowControlError', 'too large a window of a stream by a setting', [
    hello,
    headersFrame(1, held),
    windowUpdate(1, largestWindow - defaultWindow),
    setting(4, defaultWindow + 1),
  ]),
  row('1: 200', 'the reserved bit of a window update', [hello, windowUpdate(0, 0x8000_0001), headersFrame(1, get)]),
  row(
    differs('1: flowControlError', 'goaway flowControlError', "the fault is the stream's alone (6.9)"),
    "more data than a stream's window",
    [hello, opening(1, held), ...Array.from({ length: 5 }, () => dataFrame(1, full, 0))],
  ),
  row('goaway flowControlError', "more data than the connection's window", [
    hello,
    opening(1, held),
    opening(3, held),
    ...[1, 3, 1, 3, 1, 3, 1].map((id) => dataFrame(id, full, 0)),
  ]),
  // 6.10
  row('goaway protocolError', 'a continuation of nothing', [
    hello,
    frame(frameTypes.continuation, flags.endHeaders, 1, block),
  ]),
  row('goaway protocolError', 'a continuation after the end of a block', [
    hello,
    opening(1),
    frame(frameTypes.continuation, flags.endHeaders, 1, bytes()),
  ]),
  row('goaway protocolError', 'a continuation of no stream', [
    hello,
    frame(frameTypes.headers, end, 1, block),
    frame(frameTypes.continuation, flags.endHeaders, 0, bytes()),
  ]),
  row('goaway protocolError', 'a continuation of another stream', [
    hello,
    frame(frameTypes.headers, end, 1, block),
    frame(frameTypes.continuation, flags.endHeaders, 3, bytes()),
  ]),
  row('1: 200', 'a block in a continuation', [
    hello,
    frame(frameTypes.headers, end, 1, block.subarray(0, cut)),
    frame(frameTypes.continuation, flags.endHeaders, 1, block.subarray(cut)),
  ]),
  row('1: protocolError', 'an empty block', [hello, frame(frameTypes.headers, whole, 1, bytes())]),
  row('goaway protocolError', 'a priority within a block', [
    hello,
    frame(frameTypes.headers, end, 1, block),
    priority(1),
  ]),
];
