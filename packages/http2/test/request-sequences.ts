import { flags } from '../src/frames.ts';
import { dataFrame, headersFrame, hello } from './raw-client.ts';
import { row as bareRow, bytes, differs, get, held, opening, post, type Sequence } from './sequence.ts';

const without = (name: string) => {
  const at = get.indexOf(name);
  return get.filter((_, place) => place !== at && place !== at + 1);
};
const changed = (name: string, value: string) => {
  const at = get.indexOf(name) + 1;
  return get.map((text, place) => (place === at ? value : text));
};
const row = (verdict: Sequence['verdict'], name: string, sent: readonly Uint8Array[]) =>
  bareRow(verdict, name, [hello, ...sent]);
const fields = (verdict: Sequence['verdict'], name: string, all: readonly string[]) =>
  row(verdict, name, [headersFrame(1, all)]);
const length = (value: string) => [...post, 'content-length', value];
const text = Buffer.from('body');
const trailing = flags.endHeaders | flags.endStream;

/** What RFC 9113 has in its section 8. */
export const requestSequences: readonly Sequence[] = [
  // RFC 9113, 8.1
  fields('1: 200', 'a request without a body', get),
  row('1: 200', 'a request with a body', [opening(1), dataFrame(1, text)]),
  row('1: 200', 'a request with trailers', [
    opening(1),
    dataFrame(1, text, 0),
    headersFrame(1, ['x-sum', '1'], trailing),
  ]),
  row('1: 200', 'trailers without a body', [opening(1), headersFrame(1, ['x-sum', '1'], trailing)]),
  row('1: protocolError', 'trailers that do not end the request', [
    opening(1),
    headersFrame(1, ['x-sum', '1'], flags.endHeaders),
  ]),
  row('1: protocolError', 'trailers with a pseudo field', [opening(1), headersFrame(1, [':path', '/'], trailing)]),
  row('1: protocolError', 'trailers with an upper-case name', [opening(1), headersFrame(1, ['X-Sum', '1'], trailing)]),
  row('1: protocolError', 'trailers with a field of a connection', [
    opening(1),
    headersFrame(1, ['connection', 'close'], trailing),
  ]),
  row(differs('1: streamClosed', 'goaway streamClosed', "the fault is the stream's alone"), 'data after trailers', [
    opening(1, held),
    headersFrame(1, ['x-sum', '1'], trailing),
    dataFrame(1, text),
  ]),
  row('1: protocolError', 'second headers instead of trailers', [opening(1), headersFrame(1, get)]),
  // 8.1.1
  row('1: 200', 'a length that fits', [opening(1, length('4')), dataFrame(1, text)]),
  row('1: 200', 'a length that fits two frames of data', [
    opening(1, length('8')),
    dataFrame(1, text, 0),
    dataFrame(1, text),
  ]),
  row('1: protocolError', 'a body shorter than its length', [opening(1, length('5')), dataFrame(1, text)]),
  row(
    differs('1: protocolError', 'goaway internalError', "the fault is the stream's alone (8.1.1)"),
    'a body longer than its length',
    [opening(1, length('3')), dataFrame(1, text)],
  ),
  row(
    differs('1: protocolError', 'goaway internalError', "the fault is the stream's alone (8.1.1)"),
    'a body longer than its length without an end',
    [opening(1, [...held, 'content-length', '3']), dataFrame(1, text, 0)],
  ),
  row('1: protocolError', 'a length and no body', [headersFrame(1, length('4'))]),
  row('1: 200', 'a length of nothing and no body', [headersFrame(1, length('0'))]),
  row('1: protocolError', 'a length and trailers at once', [
    opening(1, length('4')),
    headersFrame(1, ['x-sum', '1'], trailing),
  ]),
  row('1: protocolError', 'a length that is no number', [opening(1, length('4x')), dataFrame(1, text)]),
  row('1: protocolError', 'a negative length', [opening(1, length('-4')), dataFrame(1, text)]),
  row('1: protocolError', 'an empty length', [opening(1, length('')), dataFrame(1, text)]),
  row('1: protocolError', 'two lengths that agree', [
    opening(1, [...length('4'), 'content-length', '4']),
    dataFrame(1, text),
  ]),
  row('1: protocolError', 'two lengths that differ', [
    opening(1, [...length('4'), 'content-length', '5']),
    dataFrame(1, text),
  ]),
  row('1: protocolError', 'a length beyond 64 bits', [opening(1, length('99999999999999999999')), dataFrame(1, text)]),
  row('1: 200', 'padding beside a length', [
    opening(1, length('4')),
    dataFrame(1, bytes(3, ...text, 0, 0, 0), flags.endStream | flags.padded),
  ]),
  // 8.2.1
  fields('1: protocolError', 'an upper-case name', [...get, 'X-Name', '1']),
  fields(differs('1: protocolError', '1: 200', 'it is malformed (8.2.1), and not passed over'), 'a name with a blank', [
    ...get,
    'x name',
    '1',
  ]),
  fields(differs('1: protocolError', '1: 200', 'it is malformed (8.2.1), and not passed over'), 'a name with a colon', [
    ...get,
    'x:name',
    '1',
  ]),
  fields(differs('1: protocolError', '1: 200', 'it is malformed (8.2.1), and not passed over'), 'an empty name', [
    ...get,
    '',
    '1',
  ]),
  fields(
    differs('1: protocolError', '1: 200', 'it is malformed (8.2.1), and not passed over'),
    'a name with a byte above ASCII',
    [...get, 'x-\xe9', '1'],
  ),
  fields(
    differs('1: protocolError', '1: 200', 'it is malformed (8.2.1), and not passed over'),
    'a value with an end of line',
    [...get, 'x-name', 'a\r\nb: c'],
  ),
  fields(differs('1: protocolError', '1: 200', 'it is malformed (8.2.1), and not passed over'), 'a value with a zero', [
    ...get,
    'x-name',
    'a\0b',
  ]),
  fields(
    differs('1: protocolError', '1: 200', 'it is malformed (8.2.1), and not passed over'),
    'a value with a control character',
    [...get, 'x-name', 'a\x01b'],
  ),
  fields('1: 200', 'a value with bytes above ASCII', [...get, 'x-name', '\xe9']),
  fields('1: 200', 'a value with blanks around it', [...get, 'x-name', ' a ']),
  fields('1: 200', 'an empty value', [...get, 'x-name', '']),
  // 8.2.2
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'].map((name) =>
    fields('1: protocolError', `a field of a connection: ${name}`, [...get, name, 'x']),
  ),
  fields('1: 200', 'te: trailers', [...get, 'te', 'trailers']),
  fields('1: protocolError', 'te: gzip', [...get, 'te', 'gzip']),
  // 8.3
  fields('1: protocolError', 'a pseudo field that is not known', [':other', '1', ...get]),
  fields('1: protocolError', "an answer's pseudo field", [...get, ':status', '200']),
  fields('1: protocolError', 'a pseudo field after others', [
    ...get.slice(0, 6),
    'x-name',
    '1',
    ':authority',
    'localhost',
  ]),
  fields('1: protocolError', 'no method', without(':method')),
  fields('1: protocolError', 'no scheme', without(':scheme')),
  fields('1: protocolError', 'no path', without(':path')),
  fields('1: protocolError', 'no authority', without(':authority')),
  fields('1: 200', 'a host and no authority', [...without(':authority'), 'host', 'localhost']),
  ...[':method', ':scheme', ':path', ':authority'].map((name) =>
    fields('1: protocolError', `an empty ${name}`, changed(name, '')),
  ),
  ...[':method', ':scheme', ':path', ':authority'].map((name) =>
    fields('1: protocolError', `${name} twice`, [...get, name, '/']),
  ),
  fields('1: protocolError', 'a path that begins with no slash', changed(':path', 'there')),
  fields('1: protocolError', 'a path with a blank', changed(':path', '/a b')),
  fields('1: protocolError', 'a method with a blank', changed(':method', 'G T')),
  fields('1: 200', 'a scheme of its own', changed(':scheme', 'order')),
  fields('1: protocolError', 'an authority with a blank', changed(':authority', 'a b')),
  fields('1: 200', 'a host that is not the authority', [...get, 'host', 'elsewhere']),
  fields('1: 200', 'an asterisk of OPTIONS', [
    ':method',
    'OPTIONS',
    ':scheme',
    'http',
    ':path',
    '*',
    ':authority',
    'localhost',
  ]),
  fields('1: protocolError', 'an asterisk of GET', changed(':path', '*')),
  // 8.5
  row(differs('1: protocolError', '1: 200', 'nothing can be reached through here'), 'CONNECT', [
    opening(1, [':method', 'CONNECT', ':authority', 'localhost']),
    dataFrame(1, text),
  ]),
  fields('1: protocolError', 'CONNECT with a path', changed(':method', 'CONNECT')),
  // 8.6 and 10.5.1
  fields('1: 200', 'an expectation', [...get, 'expect', '100-continue']),
  fields(differs('1: enhanceYourCalm', '1: 200', "Node.js's bound is another"), 'a header list that is too large', [
    ...get,
    ...Array.from({ length: 9 }, (_, at) => [`x-${at}`, 'v'.repeat(1_790)]).flat(),
  ]),
  fields('1: enhanceYourCalm', 'too many fields', [...get, ...Array.from({ length: 400 }, () => ['x', '']).flat()]),
];
