import { defineConfig } from 'vitest/config';
import { sharedTestOptions } from '../../vitest.base.ts';

export default defineConfig({ test: { ...sharedTestOptions, globalSetup: './testing/global-setup.ts' } });
