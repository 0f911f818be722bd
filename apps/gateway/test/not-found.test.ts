import fc from 'fast-check';
import { expect, test } from 'vitest';
import { useGateway } from './running-gateway.ts';

const gateway = useGateway();

/** Characters, encoded characters, encoded bytes that are no text, and broken encodings. */
const anyPiece = fc.oneof(
  fc.stringMatching(/^[!$-.:;=@-Z_a-z~0-9/]{0,8}$/),
  fc.string({ unit: 'binary', maxLength: 8 }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.integer({ min: 0, max: 255 }).map((byte) => `%${byte.toString(16).padStart(2, '0')}`),
  fc.constantFrom('%', '%2', '%zz', '%25', '%2F', '%00', '..%2f', '?', '??', '%E2%80%AE'),
);

test.each(['/order/', '/payment/'])('whatever follows %s: 404, and no internal error', async (start) => {
  const headers = gateway.headers;
  const anyPath = fc.array(anyPiece, { maxLength: 12 }).map((pieces) => pieces.join(''));
  await fc.assert(
    fc.asyncProperty(anyPath, async (path) => {
      const address = new URL(gateway.url + start + path);
      // A path with dots in it can lead elsewhere before it is sent.
      fc.pre(address.pathname.startsWith(start));
      const response = await fetch(address, { headers, signal: AbortSignal.timeout(30_000) });
      await response.text();
      expect(response.status, path).toBe(404);
      expect(gateway.errors, path).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
