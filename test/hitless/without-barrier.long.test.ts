import { describe, expect, test } from 'vitest';
import { seed } from '../harness/seed.ts';
import { withPeers } from '../peers/with-peers.ts';
import { runHitless } from './run.ts';

/** A run ends when so many requests have failed: each of the seeds 1 to 3 loses them. */
const LOST = 5;
const CHANGES_WITHOUT_BARRIER = 300;

withPeers(['envoy'], `real Envoys under constant load (FAIRLEAD_SEED=${seed})`, () => {
  describe.each([
    ['delta', true],
    ['state of the world', false],
  ])('over %s', (_, delta) => {
    test('the same changes lose requests without the barrier', async () => {
      const report = await runHitless({
        ...{ seed, delta, changes: CHANGES_WITHOUT_BARRIER },
        ...{ unguarded: true, enough: LOST },
      });
      expect(report.failures.length).toBeGreaterThanOrEqual(LOST);
    }, 180_000);
  });
});
