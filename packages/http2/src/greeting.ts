import { defaultWindow, settingIds, settingsFrame, windowUpdateFrame } from './frames.ts';
import type { Http2Limits } from './limits.ts';

/** What a connection begins with on our side: what we allow (RFC 9113, 3.4). */
export function greeting({ streamsMax, streamWindow, headerBytesMax, connectionWindow }: Http2Limits): Buffer {
  const settings = settingsFrame([
    [settingIds.maxConcurrentStreams, streamsMax],
    [settingIds.initialWindowSize, streamWindow],
    [settingIds.maxHeaderListSize, headerBytesMax],
  ]);
  return Buffer.concat([settings, windowUpdateFrame(0, connectionWindow - defaultWindow)]);
}

/** What a client of HTTP/1.1 is told (RFC 9110, 15.6.6). */
export function versionNotSupported(hint: string): Buffer {
  const text = `${hint}\n`;
  const head = ['HTTP/1.1 505 HTTP Version Not Supported', 'content-type: text/plain; charset=utf-8'];
  head.push(`content-length: ${Buffer.byteLength(text)}`, 'connection: close', '', text);
  return Buffer.from(head.join('\r\n'));
}
