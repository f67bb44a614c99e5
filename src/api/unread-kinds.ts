import { isObject, type Json, textOf } from './json.ts';
import { kinds } from './kinds.ts';
import { editDistance } from './schema-edit-distance.ts';

/** A kind of Istio or of the Gateway API that Fairlead does not read. */
interface UnreadKind {
  readonly group: string;
  readonly kind: string;
  /** What does not happen, although the owner expects it. */
  readonly consequence: string;
}

const unread = (group: string, consequences: Readonly<Record<string, string>>): readonly UnreadKind[] =>
  Object.entries(consequences).map(([kind, consequence]) => ({ group, kind, consequence }));

const routes = (protocol: string): string => `it routes no ${protocol}s; use a VirtualService`;

const unreadKinds: readonly UnreadKind[] = [
  ...unread('networking.istio.io', {
    EnvoyFilter: 'it patches nothing',
    WorkloadGroup: 'no WorkloadEntry is created from it',
  }),
  ...unread('telemetry.istio.io', { Telemetry: 'access logs, metrics and traces stay as the mesh config sets them' }),
  ...unread('extensions.istio.io', {
    WasmPlugin: 'the plugin does not run',
    TrafficExtension: 'the extension does not run',
  }),
  ...unread('install.istio.io', { IstioOperator: 'nothing is installed, and its meshConfig is not used' }),
  ...unread('gateway.networking.k8s.io', {
    GatewayClass: 'Gateways of this class are not served',
    Gateway: 'it opens no port; use a Gateway of networking.istio.io',
    HTTPRoute: routes('HTTP request'),
    GRPCRoute: routes('gRPC request'),
    TCPRoute: routes('TCP connection'),
    TLSRoute: routes('TLS connection'),
    UDPRoute: 'it routes no UDP traffic',
    ReferenceGrant: 'it grants nothing',
    BackendTLSPolicy: 'it sets up no TLS to its backends; use a DestinationRule',
    ListenerSet: 'it opens no port',
  }),
  ...unread('networking.k8s.io', {
    Ingress: 'it routes no requests; use a Gateway and a VirtualService',
    IngressClass: 'Ingresses of this class are not served',
  }),
];

/** Where objects that many controllers act on name theirs. */
const CONTROLLER_FIELDS: Readonly<Record<string, string>> = {
  'networking.k8s.io/Ingress': 'ingressClassName',
  'networking.k8s.io/IngressClass': 'controller',
  'gateway.networking.k8s.io/Gateway': 'gatewayClassName',
  'gateway.networking.k8s.io/GatewayClass': 'controllerName',
};

/** Groups of Istio 1.4 and earlier, and what their kinds have become. */
const retiredGroups: Readonly<Record<string, string>> = {
  'authentication.istio.io':
    'it neither requires mutual TLS nor verifies tokens; use a PeerAuthentication or a RequestAuthentication',
  'rbac.istio.io': 'it keeps nobody out; use an AuthorizationPolicy',
  'config.istio.io': 'no Mixer and no routing rule acts on it; use an AuthorizationPolicy, or a VirtualService',
};

/** What to say about an object of a kind that is not read. */
export interface KindRemark {
  readonly severity: 'error' | 'warning';
  readonly field: 'apiVersion' | 'kind';
  readonly message: string;
}

/** Groups whose kinds are all known. */
const ISTIO = ['networking.istio.io', 'security.istio.io', 'telemetry.istio.io', 'extensions.istio.io'];
const GATEWAY_API = 'gateway.networking.k8s.io';
/** Of the Gateway API, too: kinds that are tried out. */
const EXPERIMENTS = 'gateway.networking.x-k8s.io';

/** Groups that a misspelt group may mean. `networking.k8s.io` has too many neighbours. */
const MISTAKABLE = [...ISTIO, GATEWAY_API, 'discovery.k8s.io'];
/** Longer names are not typos. */
const LONGEST_NAME = 60;

/** A kind of Istio that is not read, as the API server has it. */
export interface UnreadResource extends UnreadKind {
  readonly plural: string;
  /** A server that has the kind has at least one of these; newest first. */
  readonly versions: readonly string[];
}

/** Istio's kinds: nobody else acts on them. A Gateway API kind, or an Ingress, may be for another program. */
export const unreadResources: readonly UnreadResource[] = unreadKinds
  .filter(({ group }) => ISTIO.includes(group))
  .map((unread) => ({
    ...unread,
    plural: `${unread.kind.toLowerCase().replace(/y$/, 'ie')}s`,
    versions: ['v1', 'v1beta1', 'v1alpha3', 'v1alpha1'],
  }));

/**
 * What to tell the owner of an object of a kind that is not read; undefined if the kind is unrelated. Only for kinds
 * that `kindOf` does not know.
 */
export function remarkOn(apiVersion: string, kind: string, object: Json = {}): KindRemark | undefined {
  const slash = apiVersion.indexOf('/');
  const group = apiVersion.slice(0, Math.max(slash, 0));
  const version = apiVersion.slice(slash + 1);
  const read = kinds.find((known) => known.group === group && known.kind === kind);
  if (read !== undefined) {
    const known = read.versions.map((each) => (group === '' ? each : `${group}/${each}`));
    return error('apiVersion', `${apiVersion} is not a version of ${kind}; write ${orOf(known)}`);
  }
  const notRead = unreadKinds.find((known) => known.group === group && known.kind === kind);
  if (notRead !== undefined) {
    if (ISTIO.includes(group) && !/^v1((alpha|beta)\d)?$/.test(version))
      return error('apiVersion', `${apiVersion} is not a version of ${kind}; write ${group}/v1`);
    const other = otherController(notRead, object);
    return warning(
      'kind',
      other === undefined
        ? `Fairlead does not read ${kind}: ${notRead.consequence}`
        : `this ${kind} is for another controller (${brief(other)}), and is not read`,
    );
  }
  const retired = Object.hasOwn(retiredGroups, group) ? retiredGroups[group] : undefined;
  if (retired !== undefined)
    return warning('kind', `${brief(kind)} is a kind of an old Istio, and has no effect: ${retired}`);
  const ofGroup = [...kinds, ...unreadKinds].filter((known) => known.group === group).map((known) => known.kind);
  const meant = nearest(kind, ofGroup, 2);
  if (ISTIO.includes(group) || (ofGroup.length > 0 && meant !== undefined)) {
    const known = meant === undefined ? `it has ${ofGroup.join(', ')}` : `did you mean ${meant}?`;
    return error('kind', `${group || 'Kubernetes'} has no kind ${brief(kind)}; ${known}`);
  }
  if (group === GATEWAY_API) return warning('kind', `Fairlead does not read ${brief(kind)}: it has no effect here`);
  if (group === EXPERIMENTS)
    return warning(
      'apiVersion',
      `Fairlead does not read ${brief(kind)}, nor what else is experimental in the Gateway API`,
    );
  const similar = nearest(group, MISTAKABLE, 3);
  if (similar === undefined) return undefined;
  return warning(
    'apiVersion',
    `the group ${brief(group)} is not known, and the object is ignored; did you mean ${similar}?`,
  );
}

/** The class, or the name, of the controller that the object names; undefined: none, or Istio's. */
function otherController({ group, kind }: UnreadKind, { metadata, spec }: Json): string | undefined {
  const field = Object.hasOwn(CONTROLLER_FIELDS, `${group}/${kind}`) ? CONTROLLER_FIELDS[`${group}/${kind}`]! : '';
  const annotations = isObject(metadata) && isObject(metadata['annotations']) ? metadata['annotations'] : {};
  const annotated = kind === 'Ingress' ? textOf(annotations['kubernetes.io/ingress.class']) : '';
  const name = annotated || textOf(isObject(spec) ? spec[field] : undefined);
  // A template may become anything.
  return /^[\w.-]+(\/[\w./-]+)?$/.test(name) && !/^istio([-.]|$)/.test(name) ? name : undefined;
}

function error(field: KindRemark['field'], message: string): KindRemark {
  return { severity: 'error', field, message };
}

function warning(field: KindRemark['field'], message: string): KindRemark {
  return { severity: 'warning', field, message };
}

/** The name that was probably meant. */
function nearest(name: string, known: readonly string[], distance: number): string | undefined {
  if (name === '' || name.length > LONGEST_NAME) return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter((each) => each.distance <= Math.min(distance, Math.floor(name.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate;
}

function orOf(names: readonly string[]): string {
  return names.length === 1 ? names[0]! : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

function brief(text: string): string {
  return text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME)}…` : text;
}
