/** The kinds that Fairlead watches. One line defines a watch; sources, RBAC and tests read this table. */
export interface Kind<Name extends SourceKindName = SourceKindName> {
  /** The key for everything that is kept by kind. Unlike `kind`, it is unique: several groups may have a `Gateway`. */
  readonly name: Name;
  /** As written in objects. */
  readonly kind: string;
  readonly group: string;
  /** The version that is read, if the API server has it; it converts the others to it. */
  readonly version: string;
  /** Every version that a file may use, and that is read if those before it are not there. */
  readonly versions: readonly string[];
  readonly plural: string;
  readonly namespaced: boolean;
  /**
   * It restricts. An object with errors is in force: what cannot be read of it allows nothing. And no proxy's word has an
   * object taken back, or delayed for others: it may be the one that is shut out.
   */
  readonly failsClosed?: true;
  /** A kind of a CRD, whose objects are reconciled: a cluster may lack it, and its status carries our conditions. */
  readonly custom: boolean;
  /** Of the Multi-Cluster Services API: read only where multi-cluster services are on. */
  readonly multicluster?: true;
  /** Its definition is not ours, and yet its status carries conditions of ours. */
  readonly isReported?: true;
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

export type MulticlusterKindName = 'ServiceExport' | 'ServiceImport';

/** Kinds that others define. */
export type ForeignKindName = CoreKindName | MulticlusterKindName;

export type KindName = ForeignKindName | CustomKindName;

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

const multicluster = (name: MulticlusterKindName, plural: string): Kind<KindName> => ({
  name,
  kind: name,
  group: 'multicluster.x-k8s.io',
  version: 'v1beta1',
  versions: ['v1beta1', 'v1alpha1'],
  plural,
  namespaced: true,
  custom: false,
  multicluster: true,
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
  { ...multicluster('ServiceExport', 'serviceexports'), isReported: true },
  multicluster('ServiceImport', 'serviceimports'),
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

/** The kinds that are read, if multi-cluster services are on or off. */
export function kindsToRead({ multiclusterServices }: { readonly multiclusterServices: boolean }): typeof kinds {
  return multiclusterServices ? kinds : kinds.filter((kind) => kind.multicluster !== true);
}

const groupsWithConditions = new Set(kinds.flatMap(({ custom: ours, group }) => (ours ? [group] : [])));

const restricting = new Set<string>(kinds.flatMap(({ name, failsClosed }) => (failsClosed ? [name] : [])));

/** Whether objects of this kind restrict proxies; see {@link Kind.failsClosed}. */
export function restricts(kind: KindName): boolean {
  return restricting.has(kind);
}

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
  ({ name, custom, multicluster }) =>
    name === 'Service' || name === 'ConfigMap' || multicluster === true || (custom && name !== 'WorkloadEntry'),
);

/**
 * Those that say nothing about what belongs to them: EndpointSlices follow a Service, and a policy may demand what
 * another one makes possible. The others name it.
 */
export const kindsWithCompanions: readonly Kind<KindName>[] = configKinds.filter(
  ({ custom, failsClosed }) => !custom || failsClosed === true,
);
