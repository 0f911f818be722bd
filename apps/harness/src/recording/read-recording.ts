import { readFile } from 'node:fs/promises';
import { FixtureError as FixtureFault } from '@gateway/fixtures/fixture';
import { readJson, JsonNumber as WrittenNumber } from '@gateway/fixtures/json-number';
import { JsonShape } from '../json-shape.ts';
import { messageOf } from '../message-of.ts';

/** One request as it was recorded. */
export interface RecordedRequest {
  /** From the recording's start. */
  readonly offsetMs: number;
  /** With lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** An object, whose numbers keep the digits that were recorded, or the body as it stands. */
  readonly body: Readonly<Record<string, unknown>> | string;
}

/** A day: no recording that is played in one go is longer. */
const offsetMaxMs = 86_400_000;

/** Reads a recording. Rejects with a {@link FixtureFault} that names the file, the first bad line, and the reason. */
export async function readRecording(file: string): Promise<RecordedRequest[]> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new FixtureFault(
      file,
      error instanceof Error && 'code' in error ? `it cannot be read: ${error.code}` : 'unread',
    );
  });
  const requests: RecordedRequest[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      const request = requestIn(line);
      if (request.offsetMs < (requests.at(-1)?.offsetMs ?? 0))
        throw new Error('its offset_ms is less than the one before');
      requests.push(request);
    } catch (error) {
      throw new FixtureFault(`${file}, line ${index + 1}`, messageOf(error));
    }
  }
  if (requests.length === 0) throw new FixtureFault(file, 'there is no request in it');
  return requests;
}

function requestIn(line: string): RecordedRequest {
  const shape = new JsonShape('the request', readJson(line), ['offset_ms', 'headers', 'body']);
  const offsetMs = shape.numberIfAny('offset_ms', 0, offsetMaxMs);
  if (offsetMs === undefined) throw shape.fault('offset_ms', 'is missing');
  const body = shape.unknown('body');
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(shape.textsOrNulls('headers'))) {
    if (value === null) throw shape.fault(`headers.${name}`, 'must be a text');
    headers[name] = value;
  }
  if (typeof body === 'string') return { offsetMs, headers, body };
  if (body instanceof WrittenNumber || typeof body !== 'object')
    throw shape.fault('body', 'must be an object or a text');
  return { offsetMs, headers, body: shape.object('body') };
}
