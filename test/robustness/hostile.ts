import fc from 'fast-check';
import { kindOf } from '../../src/api/kinds.ts';
import type { CoreKindName } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { validateCore } from '../../src/api/validate-core.ts';
import { withoutNulls } from '../../src/api/json.ts';
import type { EnvoyNode } from '../harness/mesh.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Path = readonly (string | number)[];

const TEXTS = [
  ...['', ' ', '*', '.', '..', '*.', '~', '/', '|', '-', '_', '\0', '\ud800', '\udfff', '\u202e', '😀', 'ＡＢ', 'ß'],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'a\r\nb: c',
    '%',
    '%%',
    '%REQ(a)%',
    '%REQ(',
    '\\1',
    '\\',
  ],
  ...[
    '(',
    '[',
    '(?=a)',
    '(a*)*',
    'a{1000}',
    '.*',
    '^$',
    '10.0.0.1',
    '10.0.0.0/8',
    '10.0.0.0/33',
    '999.0.0.1',
    '0.0.0.0',
  ],
  ...['::', '::1', '1:2', '127.0.0.1:80', ':80', '[::1]:80', 'unix:///tmp/x', 'unix://@x', 'unix:', '1s', '0s', '-1s'],
  ...['1e9s', '315576000001s', '1h1m', '0', '-1', '1.5', '65536', '1e400', 'true', 'null', 'a b', 'A.EXAMPLE.com'],
  ...[
    '*.example.com',
    '*a.example.com',
    'a.*.com',
    'a.example.com',
    'a.example.com.',
    'xn--nxa',
    'a:80',
    'a/b',
    './*',
    '*/*',
  ],
  ...['outbound|80||a', 'BlackHoleCluster', 'PassthroughCluster', 'virtualInbound', 'allow_any', 'mesh', 'http_proxy'],
  ...[
    'a',
    'b',
    'shop',
    'v1',
    'HTTP',
    'HTTP2',
    'TCP',
    'TLS',
    'HTTPS',
    'UDP',
    'SIMPLE',
    'MUTUAL',
    'ISTIO_MUTUAL',
    'NONE',
  ],
  ...['DNS', 'STATIC', 'PASSTHROUGH', 'REGISTRY_ONLY', 'kubernetes://x', 'spiffe://a/b', ':authority', 'host', ':path'],
  ...['x'.repeat(300), 'x.'.repeat(150), '/'.repeat(70_000)],
];
const NUMBERS = [0, -0, 1, -1, 0.5, 1.5, 2, 80, 81, 443, 9000, 15001, 15006, 65_535, 65_536, 100, 101, 599, 600];
const LARGE_NUMBERS = [2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53, 1e19, 1e300, -1e300, 5e-324, 1e-7];
// An object literal would set the prototype.
const OBJECTS = ['[]', '{}', '[null]', '[[]]', '[{}]', '{"__proto__": {"a": 1}}', '{"constructor": "a"}', '{"": ""}'];

/** Any text that a user might write where it hurts. */
export const hostileText = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
);

const hostileValue: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: hostileText },
  { weight: 2, arbitrary: fc.constantFrom(...NUMBERS, ...LARGE_NUMBERS) },
  { weight: 1, arbitrary: fc.constantFrom<Json>(null, true, false) },
  { weight: 1, arbitrary: fc.constantFrom(...OBJECTS).map((text) => JSON.parse(text) as Json) },
);

/** Any JSON whose members have these names, or names that JavaScript knows. */
export function hostileJson(names: readonly string[]): fc.Arbitrary<Json> {
  const keys = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...names) },
    { weight: 1, arbitrary: fc.constantFrom('__proto__', 'constructor', '', 'toString') },
  );
  const { json } = fc.letrec<{ json: Json }>((tie) => ({
    json: fc.oneof(
      { depthSize: 'large', withCrossShrink: true },
      hostileValue,
      fc.array(tie('json'), { maxLength: 3 }),
      fc.array(fc.tuple(keys, tie('json')), { maxLength: 6 }).map((members) => Object.fromEntries(members)),
    ),
  }));
  return json;
}

const asText = (value: Json): string => JSON.stringify(value);
const hostilePorts = fc.array(
  fc.record({
    name: fc.constantFrom<Json>('http', 'tcp', '', '__proto__', 7),
    containerPort: fc.oneof(hostileValue, fc.constantFrom<Json>(...NUMBERS, ...LARGE_NUMBERS)),
    protocol: fc.constantFrom<Json>('TCP', 'UDP', null),
  }),
  { maxLength: 3 },
);

/** What the metadata of a node may hold under the names that are read: anything. */
export const hostileMetadata: fc.Arbitrary<Record<string, unknown>> = fc
  .array(
    fc.oneof(
      fc.tuple(
        fc.constantFrom(
          ...['NAMESPACE', 'NAME', 'INSTANCE_IPS', 'LABELS', 'STATIC_LABELS', 'CLUSTER_ID', 'NETWORK', 'NODE_NAME'],
          ...['ISTIO_VERSION', 'INTERCEPTION_MODE', 'DNS_CAPTURE', 'HTTP10', 'IDLE_TIMEOUT', 'HTTP_PROXY_PORT'],
          ...['UNPRIVILEGED_POD', 'ENVOY_STATUS_PORT', 'ENVOY_PROMETHEUS_PORT', 'INBOUND_LISTENER_EXACT_BALANCE'],
          ...['TLS_CLIENT_CERT_CHAIN', 'TLS_CLIENT_KEY', 'TLS_CLIENT_ROOT_CERT', 'TLS_SERVER_CERT_CHAIN'],
          ...['PROXY_CONFIG', 'PROXY_TYPE', 'POD_PORTS', '__proto__'],
        ),
        fc.oneof({ weight: 3, arbitrary: hostileText }, { weight: 1, arbitrary: hostileJson(['app', 'proxyHeaders']) }),
      ),
      fc.tuple(fc.constant('POD_PORTS'), fc.oneof(hostilePorts, hostileJson(['name', 'containerPort'])).map(asText)),
      fc.tuple(
        fc.constant('INSTANCE_IPS'),
        fc
          .array(fc.constantFrom('10.1.0.1', '::1', 'fe80::1%eth0', '::ffff:1.2.3.4', 'FD00::0001', '0.0.0.0', 'x'), {
            maxLength: 100,
          })
          .map((addresses) => addresses.join(',')),
      ),
    ),
    { maxLength: 6 },
  )
  .map((entries) => Object.fromEntries(entries));

/** A change of something valid at a place that numbers choose. */
export interface Mutation {
  readonly target: number;
  readonly place: number;
  readonly from: number;
  readonly kind: 'replace' | 'delete' | 'repeat' | 'transplant' | 'wrap' | 'member';
  readonly value: Json;
  readonly name: string;
}

const mutation: fc.Arbitrary<Mutation> = fc.record({
  target: fc.nat(1000),
  place: fc.nat(100_000),
  from: fc.nat(100_000),
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('replace' as const) },
    { weight: 4, arbitrary: fc.constantFrom('delete', 'repeat', 'transplant', 'wrap', 'member') },
  ),
  value: hostileValue,
  name: hostileText,
});

export const mutations = fc.array(mutation, { minLength: 1, maxLength: 5 });

/**
 * Objects after mutations of what their owners write: the specs of our kinds, whatever becomes of them; and of core
 * kinds what the API server lets through.
 */
export function mutateObjects(objects: readonly KubernetesObject[], changes: readonly Mutation[]): KubernetesObject[] {
  const result = objects.map((object) => structuredClone(object));
  for (const change of changes) {
    const at = change.target % Math.max(result.length, 1);
    const object = result[at];
    if (object === undefined) continue;
    const { kind, custom } = kindOf(object.apiVersion, object.kind)!;
    const { apiVersion, kind: _, metadata, ...own } = object as KubernetesObject & { readonly [member: string]: Json };
    const donor = result[change.from % result.length] as unknown as { readonly spec?: Json };
    const { labels = {}, annotations = {} } = metadata;
    const open = { ...own, labels, annotations } as { [key: string]: Json };
    const changed = mutate(open, change, donor.spec ?? {}) as { [key: string]: Json };
    const { labels: newLabels, annotations: newAnnotations, ...members } = changed;
    const next = {
      apiVersion,
      kind,
      metadata: { ...metadata, labels: texts(newLabels), annotations: texts(newAnnotations) },
      ...members,
    } as unknown as KubernetesObject;
    if (custom) result[at] = next;
    else if (validateCore(next, kind as CoreKindName).length === 0)
      // What is null in a core kind never leaves the API server, nor the directory.
      result[at] = withoutNulls(next) as KubernetesObject;
  }
  return result;
}

/** A node is whatever a client says: everything in it may be anything, as far as the protocol has a type for it. */
export function mutateNode(node: EnvoyNode, changes: readonly Mutation[]): EnvoyNode {
  let { id, metadata = {}, locality = {} } = structuredClone(node) as EnvoyNode;
  for (const change of changes) {
    if (change.target % 10 === 0) id = change.name;
    else if (change.target % 10 === 1) locality = { region: change.name, zone: String(change.value) };
    else if (change.target % 10 < 4) metadata = mutate(metadata as Json, change, {}) as EnvoyNode['metadata'] & object;
  }
  return { ...node, id, metadata: isMembers(metadata as Json) ? metadata : {}, locality };
}

/** Labels and annotations are texts by name wherever they come from. */
function texts(value: Json | undefined): Record<string, string> {
  if (value === undefined || !isMembers(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function mutate(root: Json, { place, from, kind, value, name }: Mutation, donor: Json): Json {
  const paths = pathsOf(root).slice(1);
  if (paths.length === 0) return root;
  const path = paths[place % paths.length]!;
  const here = at(root, path);
  switch (kind) {
    case 'replace':
      return put(root, path, value);
    case 'delete':
      return put(root, path, undefined);
    case 'repeat':
      return put(root, path, Array.isArray(here) ? [...here, ...here] : value);
    case 'transplant': {
      const sources = pathsOf(donor);
      return put(root, path, at(donor, sources[from % sources.length]!));
    }
    case 'wrap':
      return put(root, path, [here]);
    case 'member':
      return put(root, path, isMembers(here) ? Object.fromEntries([...Object.entries(here), [name, value]]) : value);
  }
}

function pathsOf(value: Json, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const members: [string | number, Json][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [path, ...members.flatMap(([key, member]) => pathsOf(member, [...path, key]))];
}

function at(value: Json, path: Path): Json {
  return path.reduce<Json>((here, key) => (here as { readonly [key: string]: Json })[key]!, value);
}

function put(value: Json, path: Path, next: Json | undefined): Json {
  const [key, ...rest] = path;
  if (key === undefined) return next ?? null;
  if (Array.isArray(value))
    return value.flatMap((item, i) =>
      i !== key ? [item] : rest.length > 0 || next !== undefined ? [put(item, rest, next)] : [],
    );
  return Object.fromEntries(
    Object.entries(value as { [key: string]: Json }).flatMap(([name, member]): [string, Json][] => {
      if (name !== key) return [[name, member]];
      return rest.length > 0 || next !== undefined ? [[name, put(member, rest, next)]] : [];
    }),
  );
}

function isMembers(value: Json): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
