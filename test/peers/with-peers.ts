import { afterEach, describe, test } from 'vitest';
import { peer, peersAreRequired } from './peer.ts';
import type { PeerName } from './peer.ts';

/**
 * A suite that needs real programs. If one is missing, its tests are reported as skipped, with the reason in the title;
 * with FAIRLEAD_REQUIRE_PEERS=1 it fails instead. The body also runs for a skipped suite, to name its tests: it must
 * not start anything outside of hooks and tests.
 */
export function withPeers(names: readonly PeerName[], title: string, body: () => void): void {
  const missing = names.map(peer).find((found) => 'missing' in found)?.missing;
  if (missing === undefined) {
    describe(title, body);
  } else if (peersAreRequired()) {
    test(title, () => {
      throw new Error(missing);
    });
  } else {
    describe.skip(`${title} (${missing})`, body);
  }
}

/** Prints a program's log after each failed test of the suite. */
export function printLogOnFailure(get: () => { log(): string } | undefined): void {
  afterEach(({ task }) => {
    const log = task.result?.state === 'fail' ? get()?.log() : undefined;
    if (log) console.error(log);
  });
}
