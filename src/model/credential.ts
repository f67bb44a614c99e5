import { isObject } from '../api/json.ts';
import { kindKey, parseKindKey } from '../api/keys.ts';
import type { ServerTls } from './gateway.ts';
import type { ClientTls } from './traffic-policy.ts';

/** A certificate with its key. PEM. */
export interface KeyPair {
  /** Leaf first. */
  readonly certificates: string;
  readonly key: string;
}

/** Whom to trust. PEM. */
export interface TrustedRoots {
  readonly certificates: string;
  /** What they have revoked; empty: no list. */
  readonly revoked: string;
}

/** One of the things that a Secret may contain. */
export interface CredentialPart<Content> {
  /** The last good content; absent: there never was one. */
  readonly content?: Content;
  /** What is wrong with what is there now: a clause that follows the name of the object. Never any of the content. */
  readonly problem?: string;
}

/** What is known of a Secret or ConfigMap that proxies need. Plain JSON: an input of the graph. */
export interface Credential {
  readonly exists: boolean;
  /** What its {@link GRANTS} say. */
  readonly grants?: readonly string[];
  readonly pair: CredentialPart<KeyPair>;
  readonly roots: CredentialPart<TrustedRoots>;
}

/**
 * The annotation of a Secret that lists which Gateways of other namespaces may use it, separated by commas: a namespace,
 * `namespace/name`, or `*` for all. Used with `gatewaySecretGrants`.
 */
export const GRANTS = 'fairlead.dev/gateways-from';

/** The grants in an object's annotations, sorted; whatever is not an annotation with text has none. */
export function grantsIn(annotations: unknown): readonly string[] {
  const text = isObject(annotations) ? annotations[GRANTS] : undefined;
  if (typeof text !== 'string') return [];
  return [...new Set(text.split(',').map((each) => each.trim()))].filter((each) => each !== '').sort();
}

/** Whether the Secret grants itself to the Gateway. */
export function grants(
  { grants = [] }: Pick<Credential, 'grants'>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): boolean {
  return ['*', namespace, `${namespace}/${name}`].some((each) => grants.includes(each));
}

/** `Secret` or `ConfigMap`, then `/namespace/name`, and `@cluster` if it is in another cluster. */
export type CredentialKey = string;

export interface CredentialObject {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  readonly name: string;
  /** Where it is; absent: in the own cluster. */
  readonly cluster?: string;
}

export function credentialKey({ kind, ...object }: CredentialObject): CredentialKey {
  return kindKey(kind, accountKey(object));
}

export function parseCredentialKey(key: CredentialKey): CredentialObject {
  const { kind, key: account } = parseKindKey(key);
  return { kind: kind as CredentialObject['kind'], ...parseAccountKey(account) };
}

/** A service account. */
export interface Account {
  readonly namespace: string;
  readonly name: string;
  /** Where it is; absent: in the own cluster. */
  readonly cluster?: string;
}

/** `namespace/name`, and `@cluster` if it is in another cluster. No name in Kubernetes has an `@`. */
export type AccountKey = string;

export function accountKey({ namespace, name, cluster }: Account): AccountKey {
  return `${namespace}/${name}${cluster === undefined ? '' : `@${cluster}`}`;
}

export function parseAccountKey(key: AccountKey): Account {
  const {
    namespace = '',
    name = '',
    cluster,
  } = /^(?<namespace>[^/]*)\/(?<name>[^@]*)(?:@(?<cluster>.*))?$/s.exec(key)?.groups ?? {};
  return { namespace, name, ...(cluster !== undefined && { cluster }) };
}

/** For people: `shop/router in cluster east`. */
export function printAccount({ namespace, name, cluster }: Account): string {
  return `${namespace}/${name}${cluster === undefined ? '' : ` in cluster ${cluster}`}`;
}

/** Where the content of an SDS resource comes from. */
export interface CredentialSource {
  readonly part: 'pair' | 'roots';
  /** The first one that exists has the content. */
  readonly objects: readonly CredentialObject[];
}

/** Names of SDS resources; `roots` is empty if there are none. */
export interface CredentialResources {
  readonly pairs: readonly string[];
  readonly roots: string;
}

/**
 * The names of SDS resources for a `credentialName`: the pair, and the roots. It may already be a URL
 * (`configmap://ns/name`).
 */
export function credentialResources(credentialName: string): { readonly pair: string; readonly roots: string } {
  const pair = credentialName.includes('://') ? credentialName : `kubernetes://${credentialName}`;
  return { pair, roots: `${pair}${suffix}` };
}

/** Who has the secrets with names that begin with `sds://`. Without one, they are Secrets. */
export interface SecretProvider {
  readonly cluster: string;
  /** What it is called; empty: nothing. */
  readonly authority: string;
  /** Whether it is asked for `sds://name`, not for `name`. */
  readonly keepsPrefix: boolean;
}

/** The provider that listens in the proxy's own Pod. Source: Istio's `sds-external`. */
export const socketProvider: SecretProvider = { cluster: 'sds-external', authority: '', keepsPrefix: true };

const provided = 'sds://';

export function isProvided(resource: string): boolean {
  return resource.startsWith(provided);
}

/** What a provider is asked for. */
export function providedName(resource: string, { keepsPrefix }: SecretProvider): string {
  return keepsPrefix ? resource : resource.slice(provided.length);
}

/** What stands for a resource where there is no provider. */
export function asSecret(resource: string, part: CredentialSource['part']): string {
  if (!isProvided(resource)) return resource;
  const named = resource.slice(provided.length);
  if (part === 'pair') return credentialResources(named).pair;
  return named.endsWith(suffix) ? credentialResources(named).pair : onlyRoots(named);
}

/** The resources that the control plane serves: with a provider, not those that this one has. */
export function servedResources({ pairs, roots }: CredentialResources, hasProvider: boolean): readonly string[] {
  const served = (resource: string, part: CredentialSource['part']): string[] =>
    resource === '' || (hasProvider && isProvided(resource)) ? [] : [asSecret(resource, part)];
  return [...pairs.flatMap((pair) => served(pair, 'pair')), ...served(roots, 'roots')];
}

/** What a server asks for. */
export function serverResources({ mode, certificates }: Pick<ServerTls, 'mode' | 'certificates'>): CredentialResources {
  if (certificates.kind !== 'credentials') return { pairs: [], roots: '' };
  const named = certificates.names.map(credentialResources);
  const roots = certificates.roots === '' ? (named[0]?.roots ?? '') : onlyRoots(certificates.roots);
  return { pairs: named.map(({ pair }) => pair), roots: mode === 'SIMPLE' ? '' : roots };
}

/** What a client asks for. */
export function clientResources(tls: ClientTls): CredentialResources {
  const { mode, credentialName, caCredentialName, insecureSkipVerify } = tls;
  if (!namesCredential(tls) || (mode !== 'SIMPLE' && mode !== 'MUTUAL')) return { pairs: [], roots: '' };
  const { pair, roots } = credentialResources(credentialName);
  return {
    pairs: mode === 'MUTUAL' && credentialName !== '' ? [pair] : [],
    roots: insecureSkipVerify ? '' : caCredentialName === '' ? roots : onlyRoots(caCredentialName),
  };
}

/** Whether a client needs a Secret or a ConfigMap. */
export function namesCredential(tls: Pick<ClientTls, 'credentialName' | 'caCredentialName'>): boolean {
  return tls.credentialName !== '' || tls.caCredentialName !== '';
}

/** A Secret that is named for its roots has them without the ending, too. */
function onlyRoots(credentialName: string): string {
  const { pair, roots } = credentialResources(credentialName);
  return pair.endsWith(suffix) || pair.startsWith('configmap://') || isProvided(pair) ? pair : roots;
}

const suffix = '-cacert';
const label = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const location = new RegExp(
  `^(kubernetes|kubernetes-gateway|configmap)://(?:(${label})/)?((?=.{1,253}$)${label}(?:\\.${label})*)$`,
);

/**
 * Where a resource with this name comes from, for proxies in a namespace: Secrets of their own namespace, ConfigMaps of
 * any. A name that ends in `-cacert` means roots: of the Secret with this name, or else of the one without the ending.
 * Otherwise, why there is none: a clause that follows the name. Source: Istio's `kubernetes`, `kubernetes-gateway` and
 * `configmap` schemes.
 */
export function sourceOfResource(
  resource: string,
  own: string,
): CredentialSource | { readonly problem: string; readonly isForeign?: true } {
  const { 1: scheme, 2: namespace = own, 3: name } = location.exec(resource) ?? [];
  if (name === undefined) return { problem: 'is not the name of a Secret' };
  const without = name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined;
  if (scheme === 'configmap')
    return { part: 'roots', objects: [{ kind: 'ConfigMap', namespace, name: without ?? name }] };
  if (namespace !== own) return { problem: `is not in namespace ${own}, where the proxies run`, isForeign: true };
  const secret = (of: string): CredentialObject => ({ kind: 'Secret', namespace, name: of });
  return without === undefined
    ? { part: 'pair', objects: [secret(name)] }
    : { part: 'roots', objects: [secret(name), ...(without === '' ? [] : [secret(without)])] };
}
