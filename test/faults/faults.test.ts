import { expect, test } from 'vitest';
import { seed } from '../harness/seed.ts';
import { withPeers } from '../peers/with-peers.ts';
import { FAULTS } from './api-way.ts';
import { BOUNDS, DURING_A_FAULT, PEERS, runFaults } from './run.ts';

// The short form of what `make soak` runs.
withPeers(PEERS, `an API server that everything goes wrong with (FAIRLEAD_SEED=${seed})`, () => {
  test('no request is lost, and at the end nothing is missing or left over', async () => {
    const report = await runFaults({ seed, services: 3, rounds: 1 });
    expect(report.failures, report.failures.join('\n')).toEqual([]);
    expect(report.usurpations, report.usurpations.join('\n')).toEqual([]);
    expect(FAULTS.filter((name) => report.hits[name] === 0)).toEqual([]);
    expect(report.changes).toBeGreaterThanOrEqual(FAULTS.length * DURING_A_FAULT.changes);
    expect(report.requests).toBeGreaterThanOrEqual(FAULTS.length * DURING_A_FAULT.requests);
    expect(report.mostConnections).toBeLessThan(BOUNDS.connections);
    expect(report.memory).toBeLessThan(BOUNDS.memoryMiB * 2 ** 20);
  }, 240_000);
});
