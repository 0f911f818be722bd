import type { Http2ServerResponse } from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { sendError } from './unary-fast-path.ts';

test('a status message is encoded where the protocol or a header value requires it, and nowhere else', () => {
  const headers = new Map<string, string>();
  const response = { stream: { closed: false }, setHeader: headers.set.bind(headers), end() {} };
  sendError(response as unknown as Http2ServerResponse, new ConnectError(' 10 % of "é": x ', Code.InvalidArgument));
  expect(headers.get('grpc-message')).toBe('%2010 %25 of "%C3%A9": x%20');
});
