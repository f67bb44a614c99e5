import type { Emit, Graph } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import { secretOf } from '../../envoy/tls/credential-secrets.ts';
import type { Inputs } from '../inputs.ts';
import { secretList } from '../lists.ts';
import { type Credentials, credentialState, sourceOf } from './credentials.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';

/** The Secrets of proxies that have proven who they are; nobody else sees the lists that these are in. */
export function declareSecrets(
  graph: Graph,
  { uses }: Credentials,
  { inputs, encoder }: { readonly inputs: Inputs; readonly encoder: Encoder },
): Members {
  return graph.derive(
    'secrets',
    uses,
    (_, use, read, emit: Emit<Member>) => {
      const source = sourceOf(use);
      if ('problem' in source) return;
      const { content } = credentialState(read, inputs, use, source.part);
      if (content === undefined) return;
      emitMember(emit, secretList(use.account), encoder.secret(secretOf(use.resource, content)));
    },
    sameMember,
  );
}
