import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

/** Suites that start real programs, and wait for these more than they compute: after the others. */
const withPrograms = globSync('{src,test}/**/*.test.ts').filter((file) =>
  /\b(withPeers|startProcess)\(/.test(readFileSync(file, 'utf8')),
);

const NODE = 'test/node/*.test.ts';
const SOAK = 'test/soak/soak.test.ts';

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The default of a second is a timed assertion.
    expect: { poll: { timeout: 20_000 } },
    setupFiles: ['test/harness/seed.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'in process',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...withPrograms, NODE, SOAK],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'with programs',
          include: withPrograms,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      // One node at a time.
      {
        extends: true,
        test: { name: 'on a node', include: [NODE], maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
      // Takes all that the machine has, so it is alone.
      { extends: true, test: { name: 'soak', include: [SOAK], maxWorkers: 1, sequence: { groupOrder: 3 } } },
    ],
  },
});
