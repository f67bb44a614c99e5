import type { SourceKindName } from '../api/kinds.ts';
import { type KubernetesObject, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { quote } from '../api/quote.ts';
import { editDistance } from '../api/schema-edit-distance.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import type { FileContext } from './context.ts';
import { textsAt } from './texts.ts';

/** A place where objects of a kind name namespaces. */
interface Place {
  readonly kind: SourceKindName;
  /** `spec.rules[].from[]`: every element. */
  readonly at: string;
  /** The namespace that a text there names; undefined for none. */
  readonly read: (text: string) => string | undefined;
  readonly consequence: string;
}

const itself = (text: string): string => text;
const beforeSlash = (text: string): string | undefined => /^~?([^/]+)\//.exec(text)?.[1];
const ofPrincipal = (text: string): string | undefined => /\/ns\/([^/]+)\/sa\//.exec(text)?.[1];

const nobody = 'it matches nobody';

const places: readonly Place[] = [
  ...(['VirtualService', 'DestinationRule', 'ServiceEntry'] as const).map((kind) => ({
    kind,
    at: 'spec.exportTo[]',
    read: itself,
    consequence: 'no client uses the object there',
  })),
  { kind: 'VirtualService', at: 'spec.http[].match[].sourceNamespace', read: itself, consequence: nobody },
  { kind: 'VirtualService', at: 'spec.tcp[].match[].sourceNamespace', read: itself, consequence: nobody },
  { kind: 'VirtualService', at: 'spec.tls[].match[].sourceNamespace', read: itself, consequence: nobody },
  {
    kind: 'Gateway',
    at: 'spec.servers[].hosts[]',
    read: beforeSlash,
    consequence: 'no VirtualService has routes for it',
  },
  { kind: 'Sidecar', at: 'spec.egress[].hosts[]', read: beforeSlash, consequence: 'nothing is imported from there' },
  ...ofCallers('namespaces', 'notNamespaces', 'source.namespace', itself),
  ...ofCallers('principals', 'notPrincipals', 'source.principal', ofPrincipal),
  ...ofCallers('serviceAccounts', 'notServiceAccounts', 'source.serviceAccount', beforeSlash),
];

/** Namespaces that exist in every cluster. */
const ALWAYS = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** At most this many are reported for each object. */
const mostRemarks = 20;

/**
 * Namespaces that objects name and that do not exist. Others may be declared outside the files: unless these are
 * complete, only a name that looks like one of theirs is a mistake. A namespace with an object exists, too.
 */
export function remarksOnNamespaces(
  { objects }: Pick<LoadedDirectory, 'objects'>,
  { source, rootNamespace, complete }: FileContext,
): readonly Problem[] {
  const known = new Set([...ALWAYS, rootNamespace]);
  for (const { metadata } of objects.get('Namespace') ?? []) known.add(metadata.name);
  for (const all of objects.values()) for (const { metadata } of all) known.add(metadata.namespace ?? '');
  const said = new Map<string, string | undefined>();
  const adviceOn = (namespace: string): string | undefined => {
    if (known.has(namespace)) return undefined;
    if (said.has(namespace)) return said.get(namespace);
    const meant = [...known].find((each) => isMisspelled(namespace, each));
    const advice = complete ? 'Correct the name, or create the namespace.' : undefined;
    said.set(namespace, meant === undefined ? advice : `Did you mean ${quote(meant)}?`);
    return said.get(namespace);
  };
  return [...Map.groupBy(places, ({ kind }) => kind)].flatMap(([kind, own]) =>
    (objects.get(kind) ?? []).flatMap((object) => remarksOn(object, own, adviceOn, source).slice(0, mostRemarks)),
  );
}

function remarksOn(
  object: KubernetesObject,
  own: readonly Place[],
  adviceOn: (namespace: string) => string | undefined,
  cluster: string,
): readonly Problem[] {
  return own.flatMap(({ at, read, consequence }) =>
    textsAt(object, at).flatMap(({ text, field }): Problem[] => {
      const namespace = read(text);
      const advice = namespace !== undefined && isName(namespace) ? adviceOn(namespace) : undefined;
      if (namespace === undefined || advice === undefined) return [];
      const message = `names namespace ${quote(namespace)}, which is neither declared here nor the namespace of an object, so that ${consequence}. ${advice}`;
      return [{ object: refOf(cluster, object), field, reason: 'Ineffective', message }];
    }),
  );
}

/**
 * One letter is wrong, in a word of at least four. What differs in a digit or in a short word may be a sibling: `web-1`
 * and `web-2`, `team-a` and `team-b`, `prod-uk` and `prod-us`.
 */
function isMisspelled(name: string, known: string): boolean {
  if (Math.abs(name.length - known.length) > 1 || editDistance(name, known) !== 1) return false;
  const [words, others] = [name.split('-'), known.split('-')];
  const [[word = '', other = ''] = []] = words.map((each, i) => [each, others[i]]).filter(([a, b]) => a !== b);
  return words.length !== others.length || (/^[a-z]{4,}$/.test(word) && /^[a-z]{4,}$/.test(other));
}

/** Neither `*`, `.` or `~`, nor a value with a wildcard. */
const isName = (text: string): boolean => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text);

/** What a policy compares, in both forms. */
function ofCallers(name: string, not: string, key: string, read: Place['read']): readonly Place[] {
  const [source, when] = ['spec.rules[].from[].source', `spec.rules[].when[${key}]`];
  return [`${source}.${name}[]`, `${when}.values[]`, `${source}.${not}[]`, `${when}.notValues[]`].map((at, i) => ({
    kind: 'AuthorizationPolicy',
    at,
    read,
    consequence: i < 2 ? nobody : 'it excludes nobody',
  }));
}
