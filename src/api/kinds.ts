/** The kinds that Fairlead watches. One line defines a watch; sources, RBAC and tests read this table. */
export interface Kind<Name extends SourceKindName = SourceKindName> {
  /** The key for everything that is kept by kind. Unlike `kind`, it is unique: several groups may have a `Gateway`. */
  readonly name: Name;
  /** As written in objects. */
  readonly kind: string;
  readonly group: string;
  /** The version that is read; the API server converts the others to it. */
  readonly version: string;
  /** Every version that a file may use. */
  readonly versions: readonly string[];
  readonly plural: string;
  readonly namespaced: boolean;
  /** An object with errors is in force: what cannot be read of it allows nothing. */
  readonly failsClosed?: true;
  /** The kind has a CRD of ours: a cluster may lack it, and its status carries our conditions. */
  readonly custom: boolean;
}

export type CustomKindName =
  | 'VirtualService'
  | 'DestinationRule'
  | 'ServiceEntry'
  | 'Gateway'
  | 'Sidecar'
  | 'ProxyConfig'
  | 'WorkloadEntry'
  | 'PeerAuthentication'
  | 'RequestAuthentication'
  | 'AuthorizationPolicy';

export type CoreKindName = 'Namespace' | 'Node' | 'Pod' | 'Service' | 'Endpoints' | 'EndpointSlice' | 'ConfigMap';

export type KindName = CoreKindName | CustomKindName;

/** Secrets are not kept as objects, which can be shown: only what proxies need of them is. */
export type SourceKindName = KindName | 'Secret';

const core = <Name extends SourceKindName>(name: Name, plural: string, namespaced = true): Kind<Name> => ({
  name,
  kind: name,
  group: '',
  version: 'v1',
  versions: ['v1'],
  plural,
  namespaced,
  custom: false,
});

const custom = (group: string, versions: readonly string[], name: CustomKindName, plural: string): Kind<KindName> => ({
  name,
  kind: name,
  group,
  version: versions[0]!,
  versions,
  plural,
  namespaced: true,
  custom: true,
});

const networking = (name: CustomKindName, plural: string): Kind<KindName> =>
  custom('networking.istio.io', ['v1', 'v1beta1', 'v1alpha3'], name, plural);

const security = (name: CustomKindName, plural: string): Kind<KindName> => ({
  ...custom('security.istio.io', ['v1', 'v1beta1'], name, plural),
  failsClosed: true,
});

/**
 * In the order in which a source should read them: kinds that others refer to come first. ConfigMap means only that of
 * the mesh config.
 */
export const kinds: readonly Kind<KindName>[] = [
  core('ConfigMap', 'configmaps'),
  core('Namespace', 'namespaces', false),
  core('Node', 'nodes', false),
  core('Pod', 'pods'),
  core('Service', 'services'),
  {
    name: 'EndpointSlice',
    kind: 'EndpointSlice',
    group: 'discovery.k8s.io',
    version: 'v1',
    versions: ['v1'],
    plural: 'endpointslices',
    namespaced: true,
    custom: false,
  },
  core('Endpoints', 'endpoints'),
  networking('WorkloadEntry', 'workloadentries'),
  networking('ServiceEntry', 'serviceentries'),
  networking('DestinationRule', 'destinationrules'),
  networking('Sidecar', 'sidecars'),
  // The only version that Istio's definition has.
  custom('networking.istio.io', ['v1beta1'], 'ProxyConfig', 'proxyconfigs'),
  networking('Gateway', 'gateways'),
  networking('VirtualService', 'virtualservices'),
  security('PeerAuthentication', 'peerauthentications'),
  security('RequestAuthentication', 'requestauthentications'),
  security('AuthorizationPolicy', 'authorizationpolicies'),
];

const groupsWithConditions = new Set(kinds.flatMap(({ custom: ours, group }) => (ours ? [group] : [])));

/** Whether the objects of a group have our conditions in their status. */
export function hasConditions({ group }: Pick<Kind, 'group'>): boolean {
  return groupsWithConditions.has(group);
}

/** The kind for an object's `apiVersion` and `kind`; undefined if it is not one of ours. */
export function kindOf(apiVersion: string, kind: string): Kind<KindName> | undefined {
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  const version = apiVersion.slice(slash + 1);
  return kinds.find((k) => k.kind === kind && k.group === group && k.versions.includes(version));
}

const secret = core('Secret', 'secrets');

/** Every kind that a source may deliver. */
export const sourceKinds: readonly Kind[] = [...kinds, secret];

/** {@link kindOf} for what a source may deliver. */
export function sourceKindOf(apiVersion: string, kind: string): Kind | undefined {
  return apiVersion === 'v1' && kind === secret.kind ? secret : kindOf(apiVersion, kind);
}

/** What people write, several objects at a time. Other kinds follow from what runs. */
export const configKinds: readonly Kind<KindName>[] = kinds.filter(
  ({ name, custom }) => name === 'Service' || name === 'ConfigMap' || (custom && name !== 'WorkloadEntry'),
);
