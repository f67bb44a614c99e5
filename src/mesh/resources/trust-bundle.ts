import type { Emit, Graph } from '../../cache/graph.ts';
import { trustBundle } from '../../envoy/tls/trust-bundle.ts';
import type { Inputs } from '../inputs.ts';
import { trustList } from '../lists.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';

/** The roots, for agents that ask for them. */
export function declareTrustBundle(graph: Graph, inputs: Inputs): Members {
  return graph.derive(
    'trustBundles',
    inputs.trustBundle,
    (_, { roots }, __, emit: Emit<Member>) => emitMember(emit, trustList, trustBundle(roots)),
    sameMember,
  );
}
