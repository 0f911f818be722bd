import { createClient } from '@gateway/client';
import { expect, test } from 'vitest';
test('x', () => { expect(createClient).toBeTypeOf('function'); });
