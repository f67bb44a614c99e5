import { describe, test } from 'vitest';
import { peersAreRequired } from '../peers/peer.ts';
import { whyNoNode } from './why-no-node.ts';

/**
 * A suite that needs a real node. Where the machine cannot run one, its tests are reported as skipped, with the reason in
 * the title; with FAIRLEAD_REQUIRE_PEERS=1 it fails instead. The body also runs for a skipped suite: it must not start
 * anything outside of hooks and tests.
 */
export function withNode(title: string, body: () => void): void {
  const missing = whyNoNode();
  if (missing === undefined) describe(title, body);
  else if (peersAreRequired()) {
    test(title, () => {
      throw new Error(missing);
    });
  } else describe.skip(`${title} (${missing})`, body);
}
