import protobuf from 'protobufjs';

/** Packages whose messages a control plane builds or reads; types that they refer to are added. */
const PACKAGES = [
  'envoy.config.accesslog.v3',
  'envoy.config.bootstrap.v3',
  'envoy.config.cluster.v3',
  'envoy.config.core.v3',
  'envoy.config.endpoint.v3',
  'envoy.config.listener.v3',
  'envoy.config.rbac.v3',
  'envoy.config.route.v3',
  'envoy.config.tap.v3',
  'envoy.config.trace.v3',
  'envoy.admin.v3',
  'envoy.data.accesslog.v3',
  'envoy.service.discovery.v3',
  'envoy.service.status.v3',
  'envoy.type.http.v3',
  'envoy.type.matcher.v3',
  'envoy.type.v3',
  'envoy.extensions.access_loggers.file.v3',
  'envoy.extensions.access_loggers.filters.cel.v3',
  'envoy.extensions.access_loggers.grpc.v3',
  'envoy.extensions.access_loggers.open_telemetry.v3',
  'envoy.extensions.access_loggers.stream.v3',
  'envoy.extensions.clusters.aggregate.v3',
  'envoy.extensions.clusters.dns.v3',
  'envoy.extensions.clusters.dynamic_forward_proxy.v3',
  'envoy.extensions.common.dynamic_forward_proxy.v3',
  'envoy.extensions.compression.gzip.compressor.v3',
  'envoy.extensions.filters.common.fault.v3',
  'envoy.extensions.filters.http.buffer.v3',
  'envoy.extensions.filters.http.compressor.v3',
  'envoy.extensions.filters.http.cors.v3',
  'envoy.extensions.filters.http.dynamic_forward_proxy.v3',
  'envoy.extensions.filters.http.ext_authz.v3',
  'envoy.extensions.filters.http.fault.v3',
  'envoy.extensions.filters.http.grpc_stats.v3',
  'envoy.extensions.filters.http.grpc_web.v3',
  'envoy.extensions.filters.http.header_mutation.v3',
  'envoy.extensions.filters.http.health_check.v3',
  'envoy.extensions.filters.http.jwt_authn.v3',
  'envoy.extensions.filters.http.local_ratelimit.v3',
  'envoy.extensions.filters.http.lua.v3',
  'envoy.extensions.filters.http.on_demand.v3',
  'envoy.extensions.filters.http.original_src.v3',
  'envoy.extensions.filters.http.ratelimit.v3',
  'envoy.extensions.filters.http.rbac.v3',
  'envoy.extensions.filters.http.router.v3',
  'envoy.extensions.filters.http.set_filter_state.v3',
  'envoy.extensions.filters.http.stateful_session.v3',
  'envoy.extensions.filters.http.upstream_codec.v3',
  'envoy.extensions.filters.http.wasm.v3',
  'envoy.extensions.filters.listener.http_inspector.v3',
  'envoy.extensions.filters.listener.original_dst.v3',
  'envoy.extensions.filters.listener.original_src.v3',
  'envoy.extensions.filters.listener.proxy_protocol.v3',
  'envoy.extensions.filters.listener.tls_inspector.v3',
  'envoy.extensions.filters.network.connection_limit.v3',
  'envoy.extensions.filters.network.ext_authz.v3',
  'envoy.extensions.filters.network.http_connection_manager.v3',
  'envoy.extensions.filters.network.local_ratelimit.v3',
  'envoy.extensions.filters.network.mongo_proxy.v3',
  'envoy.extensions.filters.network.rbac.v3',
  'envoy.extensions.filters.network.redis_proxy.v3',
  'envoy.extensions.filters.network.set_filter_state.v3',
  'envoy.extensions.filters.network.sni_cluster.v3',
  'envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3',
  'envoy.extensions.filters.network.tcp_proxy.v3',
  'envoy.extensions.formatter.metadata.v3',
  'envoy.extensions.formatter.req_without_query.v3',
  'envoy.extensions.http.cache.simple_http_cache.v3',
  'envoy.extensions.http.header_validators.envoy_default.v3',
  'envoy.extensions.http.original_ip_detection.custom_header.v3',
  'envoy.extensions.http.original_ip_detection.xff.v3',
  'envoy.extensions.http.stateful_session.cookie.v3',
  'envoy.extensions.http.stateful_session.header.v3',
  'envoy.extensions.internal_redirect.allow_listed_routes.v3',
  'envoy.extensions.internal_redirect.previous_routes.v3',
  'envoy.extensions.internal_redirect.safe_cross_scheme.v3',
  'envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3',
  'envoy.extensions.load_balancing_policies.least_request.v3',
  'envoy.extensions.load_balancing_policies.maglev.v3',
  'envoy.extensions.load_balancing_policies.override_host.v3',
  'envoy.extensions.load_balancing_policies.random.v3',
  'envoy.extensions.load_balancing_policies.ring_hash.v3',
  'envoy.extensions.load_balancing_policies.round_robin.v3',
  'envoy.extensions.load_balancing_policies.subset.v3',
  'envoy.extensions.load_balancing_policies.wrr_locality.v3',
  'envoy.extensions.path.match.uri_template.v3',
  'envoy.extensions.path.rewrite.uri_template.v3',
  'envoy.extensions.request_id.uuid.v3',
  'envoy.extensions.retry.host.omit_canary_hosts.v3',
  'envoy.extensions.retry.host.omit_host_metadata.v3',
  'envoy.extensions.retry.host.previous_hosts.v3',
  'envoy.extensions.retry.priority.previous_priorities.v3',
  'envoy.extensions.transport_sockets.internal_upstream.v3',
  'envoy.extensions.transport_sockets.proxy_protocol.v3',
  'envoy.extensions.transport_sockets.quic.v3',
  'envoy.extensions.transport_sockets.raw_buffer.v3',
  'envoy.extensions.transport_sockets.tls.v3',
  'envoy.extensions.upstreams.http.v3',
  'envoy.extensions.upstreams.tcp.v3',
  'google.protobuf',
  'google.rpc',
  'xds.type.matcher.v3',
];

/** `google.protobuf` is included for its well-known types, not for the descriptors' own types. */
const LEFT_OUT = /^google\.protobuf\.(.*Descriptor.*|.*Options|UninterpretedOption|SourceCodeInfo|.*Feature.*)(\.|$)/;

/** Packages whose messages keep their plain name if two have the same name; the first one wins. */
const PLAIN_NAMES = [
  /^google\.protobuf$/,
  /^envoy\.config\.(endpoint|listener|route)\.v3$/,
  /^envoy\.config\.cluster\.v3$/,
  /^envoy\.config\.core\.v3$/,
  /^envoy\.service\.discovery\.v3$/,
  /^envoy\.type\./,
  /^envoy\.config\./,
];

const HEADER = `// Generated by tools/protos/generate.ts. Do not edit.
//
// Envoy's messages as plain objects, in the names that the descriptors give them (JSON names). A member that is
// undefined is not written. 64-bit numbers are a number, or a decimal string where a number would be inexact.
`;

/**
 * One interface per message, and a union of names per enum. A nested type is called `Outer_Inner`. If two messages have
 * the same name, one keeps it (PLAIN_NAMES), and the last parts of the other's package are prepended to its name.
 */
export function typesOf(root: protobuf.Root): string {
  const used = [...closure(root)].sort((a, b) => (a.fullName < b.fullName ? -1 : 1));
  const names = shortNames(used);
  const messages = used.filter((type) => type instanceof protobuf.Type);
  const table = messages.map((type) => `  readonly '${type.fullName.slice(1)}': ${names.get(type)};`);
  return [
    HEADER,
    '/** The message of each type, by its full name. */',
    `export interface MessageTypes {\n${table.join('\n')}\n}\n`,
    ...used.map((type) => (type instanceof protobuf.Type ? interfaceOf(type, names) : enumOf(type, names))),
  ].join('\n');
}

type Named = protobuf.Type | protobuf.Enum;

function closure(root: protobuf.Root): Set<Named> {
  const used = new Set<Named>();
  const add = (type: Named): void => {
    if (used.has(type) || LEFT_OUT.test(type.fullName.slice(1))) return;
    used.add(type);
    if (type instanceof protobuf.Enum) return;
    for (const field of type.fieldsArray) if (field.resolvedType) add(field.resolvedType);
    for (const nested of type.nestedArray) if (isNamed(nested)) add(nested);
  };
  for (const name of PACKAGES) {
    for (const nested of packageOf(root, name).nestedArray) if (isNamed(nested)) add(nested);
  }
  return used;
}

function isNamed(object: protobuf.ReflectionObject): object is Named {
  return object instanceof protobuf.Type || object instanceof protobuf.Enum;
}

function packageOf(root: protobuf.Root, name: string): protobuf.Namespace {
  const found = root.lookup(name);
  if (!(found instanceof protobuf.Namespace)) throw new Error(`no such package: ${name}`);
  return found;
}

function shortNames(types: readonly Named[]): Map<Named, string> {
  const outermost = new Map<Named, string>();
  const byPlainName = Map.groupBy(new Set(types.map(outermostOf)), (type) => type.name);
  for (const [plain, group] of byPlainName) {
    const keeper = keeperOf(group);
    for (const type of group) outermost.set(type, type === keeper ? plain : qualified(type));
  }
  const nameOf = (type: Named): string =>
    outermost.get(type) ?? (type.parent instanceof protobuf.Type ? `${nameOf(type.parent)}_${type.name}` : type.name);
  const names = new Map(types.map((type) => [type, nameOf(type)]));
  const clash = [...Map.groupBy(names.values(), (name) => name).values()].find((same) => same.length > 1);
  if (clash) throw new Error(`two types are called ${clash[0]}`);
  return names;
}

function keeperOf(group: readonly Named[]): Named | undefined {
  if (group.length === 1) return group[0];
  for (const pattern of PLAIN_NAMES) {
    const matching = group.filter((type) => pattern.test(packageNameOf(type)));
    if (matching.length > 0) return matching.length === 1 ? matching[0] : undefined;
  }
  return undefined;
}

function outermostOf(type: Named): Named {
  return type.parent instanceof protobuf.Type ? outermostOf(type.parent) : type;
}

function packageNameOf(type: Named): string {
  return outermostOf(type).parent?.fullName.slice(1) ?? '';
}

/** `envoy.extensions.filters.http.cors.v3.CorsPolicy` -> `HttpCorsPolicy`: words are not repeated. */
function qualified(type: Named): string {
  const parts = packageNameOf(type)
    .split('.')
    .filter((part) => !/^(envoy|config|v\d.*)$/.test(part));
  const words = (packageNameOf(type).startsWith('envoy.') ? parts.slice(-2) : parts)
    .flatMap((part) => part.split('_'))
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  const plain = type.name.toLowerCase();
  const said = words.findIndex((_, from) => plain.startsWith(words.slice(from).join('').toLowerCase()));
  return (said < 0 ? words : words.slice(0, said)).join('') + type.name;
}

const ANY = `/** google.protobuf.Any */
export interface Any {
  readonly typeUrl?: string | undefined;
  /** Bytes, or a message of the type: it is encoded when the message is that it is in. */
  readonly value?: object | undefined;
}
`;

function interfaceOf(type: protobuf.Type, names: ReadonlyMap<Named, string>): string {
  if (type.fullName === '.google.protobuf.Any') return ANY;
  const fields = type.fieldsArray.toSorted((a, b) => a.id - b.id);
  const members = fields.map((field) => `  readonly ${field.name}?: ${memberType(field, names)} | undefined;\n`);
  const body = members.length === 0 ? ' readonly [none: string]: never ' : `\n${members.join('')}`;
  return `/** ${type.fullName.slice(1)} */\nexport interface ${names.get(type)} {${body}}\n`;
}

function enumOf(type: protobuf.Enum, names: ReadonlyMap<Named, string>): string {
  const values = Object.keys(type.values).map((value) => `'${value}'`);
  return `/** ${type.fullName.slice(1)} */\nexport type ${names.get(type)} = ${values.join(' | ')} | number;\n`;
}

function memberType(field: protobuf.Field, names: ReadonlyMap<Named, string>): string {
  const single = field.resolvedType ? names.get(field.resolvedType) : scalar(field.type);
  if (single === undefined) throw new Error(`${field.fullName}: ${field.type} is not in the set`);
  if (field.map) return `{ readonly [key: string]: ${single} }`;
  return field.repeated ? `readonly ${single.includes('|') ? `(${single})` : single}[]` : single;
}

function scalar(type: string): string {
  switch (type) {
    case 'string':
      return 'string';
    case 'bool':
      return 'boolean';
    case 'bytes':
      return 'Uint8Array';
    case 'int64':
    case 'uint64':
    case 'sint64':
    case 'fixed64':
    case 'sfixed64':
      return 'number | string';
    default:
      return 'number';
  }
}
