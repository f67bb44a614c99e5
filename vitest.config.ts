import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const NODE = 'test/node/*.test.ts';
const LONG = '**/*.long.test.ts';
const ALL = ['src/**/*.test.ts', 'test/**/*.test.ts'];

/**
 * Suites that wait more than they compute, for real programs or as clients of a whole Fairlead: more of them run at once
 * than there are cores.
 */
const waiting = globSync(ALL, { exclude: [NODE, LONG] }).filter(
  (file) =>
    /^test\/(conformance|features)\//.test(file) || /\b(withPeers|startProcess)\(/.test(readFileSync(file, 'utf8')),
);

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The default of a second is a timed assertion.
    expect: { poll: { timeout: 20_000 } },
    setupFiles: ['test/harness/seed.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'waiting',
          include: waiting,
          globalSetup: ['test/peers/lent-api-servers.ts'],
          maxWorkers: 5,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'computing',
          include: ALL,
          exclude: [...waiting, NODE, LONG],
          maxWorkers: 2,
          // Modules have no state of their own, and loading them again for each file takes two thirds of the time.
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      // `make test-node`: one node at a time.
      {
        extends: true,
        test: { name: 'on-a-node', include: [NODE], maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
      // `make test-long`: these find other work beside them on users' machines, too.
      {
        extends: true,
        test: { name: 'long', include: [LONG], maxWorkers: 2, sequence: { groupOrder: 3 } },
      },
    ],
  },
});
