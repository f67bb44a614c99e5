import { compareText } from '../model/age.ts';
import type { UpstreamSockets } from '../model/cluster.ts';
import type { ClusterSettings } from '../model/mesh-config.ts';
import type { ClientTls } from '../model/traffic-policy.ts';
import type { ClusterTraits } from '../model/traits.ts';

export interface UpstreamSocketsInput {
  /** The rule's setting. */
  readonly tls: ClientTls | undefined;
  /** The peers can be expected to speak mutual TLS, each as its endpoint says. */
  readonly autoMtls: boolean;
  /** Names that peers prove in the mesh's mutual TLS; see {@link peerNames}. */
  readonly peerNames: readonly string[];
  /** Server name for the mesh's mutual TLS. */
  readonly meshSni: string;
  /** Names of a ServiceEntry, accepted if the rule has none. */
  readonly entryNames: readonly string[];
  /** Whether endpoints say what they speak; they do not if they are the client's original destinations. */
  readonly hasMarks: boolean;
  readonly traits: Pick<ClusterTraits, 'agent' | 'clientCertificate'>;
}

const plaintext: UpstreamSockets = { kind: 'plaintext' };

/** The rule's setting, or else mutual TLS if the mesh has it. */
export function upstreamSockets(input: UpstreamSocketsInput): UpstreamSockets {
  const { tls, traits, meshSni } = input;
  if (tls === undefined) return input.autoMtls && traits.agent ? autoMtls(input) : plaintext;
  switch (tls.mode) {
    case 'DISABLE':
      return plaintext;
    case 'SIMPLE':
      return originated(input, tls, false);
    case 'MUTUAL':
      return originated(input, withMountedFiles(tls, input.traits), true);
    case 'ISTIO_MUTUAL': {
      if (!traits.agent) return plaintext;
      if (traits.clientCertificate !== undefined) return originated(input, withMountedFiles(tls, traits), true);
      const names = tls.subjectAltNames.length > 0 ? tls.subjectAltNames : input.peerNames;
      return { kind: 'mesh', names, sni: tls.sni === '' ? meshSni : tls.sni, toMarked: false };
    }
  }
}

function autoMtls(input: UpstreamSocketsInput): UpstreamSockets {
  const { traits, peerNames: names, meshSni: sni, hasMarks } = input;
  if (traits.clientCertificate === undefined) return { kind: 'mesh', names, sni, toMarked: hasMarks };
  return originated(input, { ...withMountedFiles(noTls, traits), subjectAltNames: names, sni }, true);
}

function originated({ entryNames }: UpstreamSocketsInput, tls: ClientTls, mutual: boolean): UpstreamSockets {
  const autoSni = tls.sni === '';
  return {
    kind: 'originated',
    tls,
    names: tls.subjectAltNames.length > 0 ? tls.subjectAltNames : entryNames,
    mutual,
    autoSni,
    autoSanValidation: autoSni && tls.subjectAltNames.length === 0 && !tls.insecureSkipVerify,
  };
}

/** Names that peers prove: their identities and what the Service adds, in each of the mesh's trust domains. Sorted. */
export function peerNames(
  identities: readonly string[],
  subjectAltNames: readonly string[],
  { trustDomainAliases }: Pick<ClusterSettings, 'trustDomainAliases'>,
): readonly string[] {
  const names = new Set([...identities, ...subjectAltNames]);
  if (trustDomainAliases.length === 0) return [...names].sort(compareText);
  for (const name of [...names]) {
    const workload = /^spiffe:\/\/[^/]+(\/ns\/[^/]+\/sa\/[^/]+)$/.exec(name)?.[1];
    if (workload !== undefined) for (const domain of trustDomainAliases) names.add(`spiffe://${domain}${workload}`);
  }
  return [...names].sort(compareText);
}

/** Certificate files in a proxy's metadata override those of a rule and of the mesh. */
function withMountedFiles(
  tls: ClientTls,
  { clientCertificate: files }: Pick<ClusterTraits, 'clientCertificate'>,
): ClientTls {
  if (files === undefined) return tls;
  return {
    ...noTls,
    mode: 'MUTUAL',
    clientCertificate: files.chain,
    privateKey: files.key,
    caCertificates: files.root,
    subjectAltNames: tls.subjectAltNames,
    sni: tls.sni,
  };
}

const noTls: ClientTls = {
  caCrl: '',
  mode: 'MUTUAL',
  clientCertificate: '',
  privateKey: '',
  caCertificates: '',
  credentialName: '',
  caCredentialName: '',
  subjectAltNames: [],
  sni: '',
  insecureSkipVerify: false,
};
