/** Brings a snapshot into the form of the recorded answers; the numbers are the rules of README.md. */

export type Tree = null | boolean | number | string | Tree[] | { [key: string]: Tree };
type Dict = { [key: string]: Tree };

export interface Document {
  readonly primary: Dict;
  /** Telemetry by path (rules 3 and 4). */
  readonly telemetry: Dict;
}

/** Filters that only istio-proxy has (1). */
const ISTIO_FILTERS = new Set(['istio.metadata_exchange', 'istio.alpn', 'istio.stats']);

const text = (value: Tree | undefined): string => JSON.stringify(sortKeys(value ?? null));
const field = (value: Tree, name: string): Tree => (isDict(value) ? (value[name] ?? null) : null);

/** Lists whose order means nothing, with what they are sorted by (5). */
const UNORDERED: { readonly [field: string]: (value: Tree) => string } = {
  virtual_hosts: (v) => String(field(v, 'name') ?? ''),
  domains: String,
  filter_chains: (v) => `${String(field(v, 'name') ?? '')} ${text(field(v, 'filter_chain_match') ?? {})}`,
  server_names: String,
  application_protocols: String,
  prefix_ranges: text,
  headers: text,
  query_parameters: text,
  match_subject_alt_names: text,
  lb_endpoints: (v) => text(field(field(v, 'endpoint'), 'address')),
  endpoints: (v) => `${String(field(v, 'priority') ?? 0)} ${text(field(v, 'locality') ?? {})}`,
};

export function normalise(snapshot: { readonly [kind: string]: readonly Tree[] }): Document {
  const primary: Dict = {};
  const telemetry: Dict = {};
  for (const kind of ['cds', 'eds', 'lds', 'rds']) {
    const byName: Dict = {};
    for (const resource of snapshot[kind] ?? []) {
      const { '@type': _, ...rest } = resource as Dict;
      const snake = snakeCase(rest);
      const name = String(field(snake, 'name') ?? field(snake, 'cluster_name'));
      byName[name] = walk(snake, '', `${kind}/${name}`, telemetry);
    }
    primary[kind] = byName;
  }
  return { primary, telemetry };
}

/** A recorded answer; its telemetry stands apart already. */
export function recorded(document: Dict): Document {
  const { secondary = [], ...rest } = document;
  const telemetry: Dict = {};
  for (const group of secondary as { value: Tree; at: string[] }[])
    for (const at of group.at) telemetry[at] = group.value;
  return { primary: resort(rest, '') as Dict, telemetry };
}

/** Sorting here and where it was recorded need not agree on every character: both sides are sorted by the same rule. */
function resort(value: Tree, name: string): Tree {
  if (Array.isArray(value))
    return sorted(
      value.map((item) => resort(item, '')),
      name,
    );
  if (!isDict(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resort(item, key)]));
}

function sorted(items: Tree[], name: string): Tree[] {
  const keyOf = Object.hasOwn(UNORDERED, name) ? UNORDERED[name] : undefined;
  if (keyOf === undefined) return items;
  return items
    .map((item) => ({ item, key: keyOf(item), all: text(item) }))
    .sort((a, b) => compare(a.key, b.key) || compare(a.all, b.all))
    .map(({ item }) => item);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function walk(value: Tree, name: string, path: string, telemetry: Dict): Tree {
  if (Array.isArray(value)) {
    const kept = value.filter(
      (item) =>
        !((name === 'filters' || name === 'http_filters') && ISTIO_FILTERS.has(String(field(item, 'name')))) &&
        !(name === 'alpn_protocols' && item === 'istio-peer-exchange'),
    );
    return sorted(
      kept.map((item, i) => walk(item, '', `${path}[${labelOf(item, i)}]`, telemetry)),
      name,
    );
  }
  if (!isDict(value)) return value;
  const result: Dict = {};
  for (const [key, item] of Object.entries(value)) {
    const at = `${path}/${key}`;
    if (key === 'tracing' && 'http_filters' in value) {
      telemetry[at] = item;
      continue;
    }
    let member = item;
    if (key === 'metadata' && isDict(item) && 'filter_metadata' in item) {
      const { istio, ...filters } = item['filter_metadata'] as Dict;
      if (istio !== undefined) telemetry[`${at}/istio`] = istio;
      const { filter_metadata: __, ...others } = item;
      member = Object.keys(filters).length > 0 ? { ...others, filter_metadata: filters } : others;
      if (Object.keys(member).length === 0) continue;
    }
    const walked = walk(member, key, at, telemetry);
    if (Array.isArray(walked) && walked.length === 0 && ['filters', 'http_filters', 'alpn_protocols'].includes(key))
      continue;
    result[key] = walked;
  }
  return result;
}

function labelOf(value: Tree, i: number): string {
  const name = field(value, 'name');
  if (typeof name === 'string') return name;
  const address = field(field(field(value, 'endpoint'), 'address'), 'socket_address');
  return isDict(address) ? `${String(address['address'])}:${String(address['port_value'])}` : String(i);
}

/** Field names as protos spell them. Keys of maps (metadata, extension options, Structs) are left as they are. */
function snakeCase(value: Tree, isMap = false): Tree {
  if (Array.isArray(value)) return value.map((item) => snakeCase(item));
  if (!isDict(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const name = isMap || key === '@type' ? key : protoName(key);
      if (name === 'match' && 'transportSocket' in value) return [name, item];
      return [name, MAPS.has(name) ? mapOf(name, item) : snakeCase(item)];
    }),
  );
}

/** Names whose parts do not begin with a letter. */
const NUMBERED: { readonly [name: string]: string } = {
  proxy100Continue: 'proxy_100_continue',
  consecutive5xx: 'consecutive_5xx',
  enforcingConsecutive5xx: 'enforcing_consecutive_5xx',
  acceptHttp10: 'accept_http_10',
};

const protoName = (name: string): string =>
  NUMBERED[name] ?? (/\W/.test(name) ? name : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

const MAPS = new Set(['filter_metadata', 'typed_extension_protocol_options', 'typed_per_filter_config', 'json_format']);

function mapOf(name: string, value: Tree): Tree {
  if (!isDict(value)) return value;
  // Structs: every level is a map. Maps of messages: only the first is.
  if (name === 'filter_metadata' || name === 'json_format') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, snakeCase(item)]));
}

function isDict(value: Tree): value is Dict {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sortKeys(value: Tree): Tree {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isDict(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortKeys(value[key]!)]),
  );
}
