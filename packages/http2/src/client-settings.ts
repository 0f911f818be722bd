import { ConnectionFault, errorCodes, frameBytesLimit, frameBytesMax, largestWindow, settingIds } from './frames.ts';

const entryBytes = 6;

/** RFC 9113 names six; a client has no use for more than a few times that. */
const entriesMax = 32;

export interface ClientSettings {
  readonly initialWindowSize: number | undefined;
  /** The least that was set. */
  readonly headerTableSize: number | undefined;
}

/** Reads a frame of settings. Throws at values that there are not; of those that are set twice the last counts (RFC 9113, 6.5). */
export function readSettings(payload: Buffer): ClientSettings {
  if (payload.length % entryBytes !== 0) throw new ConnectionFault(errorCodes.frameSizeError, 'cut settings');
  if (payload.length > entriesMax * entryBytes) {
    throw new ConnectionFault(errorCodes.enhanceYourCalm, 'too many settings');
  }
  let initialWindowSize: number | undefined;
  let headerTableSize: number | undefined;
  for (let at = 0; at < payload.length; at += entryBytes) {
    const id = payload.readUInt16BE(at);
    const value = payload.readUInt32BE(at + 2);
    if (id === settingIds.enablePush && value > 1) throw wrong(id, errorCodes.protocolError);
    if (id === settingIds.maxFrameSize && (value < frameBytesMax || value > frameBytesLimit)) {
      throw wrong(id, errorCodes.protocolError);
    }
    if (id === settingIds.headerTableSize) headerTableSize = Math.min(value, headerTableSize ?? value);
    if (id === settingIds.initialWindowSize) {
      if (value > largestWindow) throw wrong(id, errorCodes.flowControlError);
      initialWindowSize = value;
    }
  }
  return { initialWindowSize, headerTableSize };
}

function wrong(id: number, code: number): ConnectionFault {
  return new ConnectionFault(code, `setting ${id} has no such value`);
}
