import { describe, expect, test } from 'vitest';
import { seed } from '../harness/seed.ts';
import { withPeers } from '../peers/with-peers.ts';
import { runHitless } from './run.ts';

// The short form of what `make soak` runs.
const CHANGES = 50;

withPeers(['envoy'], `real Envoys under constant load (FAIRLEAD_SEED=${seed})`, () => {
  describe.each([
    ['delta', true],
    ['state of the world', false],
  ])('over %s', (_, delta) => {
    test('no request is lost while anything changes', async () => {
      const report = await runHitless({ seed, delta, changes: CHANGES });
      expect(report.failures, report.failures.join('\n')).toEqual([]);
      expect(report.rejections, report.rejections.join('\n')).toEqual([]);
      expect(report.changes).toBe(CHANGES);
      // Every protocol, on new and on kept connections; TCP only on new ones.
      expect(Object.keys(report.requests)).toHaveLength(9);
      for (const [kind, count] of Object.entries(report.requests)) expect(count, kind).toBeGreaterThan(CHANGES);
    }, 120_000);
  });
});
