import { type KubernetesObject, objectKey, refOf } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { GatewayModel, GatewayServer, ServerHost, ServerPort } from '../../model/gateway.ts';
import { canonicalAddress, isAddress, isSocket } from '../../model/address.ts';
import { canonicalHost, isHostName } from '../../model/host.ts';
import { protocolClass } from '../../model/service.ts';
import { quote } from '../../api/quote.ts';
import { Field, Findings } from '../field.ts';
import { readServerTls } from './tls.ts';
import { parseProtocol } from '../protocol.ts';
import { findUnsupported } from '../unsupported-fields.ts';
import { isSocketPath } from '../core/workload-spec.ts';

export interface ReconciledGateway {
  /** The model; none if the object is not valid. */
  readonly models: readonly GatewayModel[];
  readonly problems: readonly Problem[];
}

/** The servers of one port are built in one step, 50 µs each. */
const mostServers = 2000;

export function reconcileGateway(
  object: KubernetesObject & { readonly spec?: unknown },
  context: { readonly source: string },
): ReconciledGateway {
  const { name, namespace = '', creationTimestamp = '' } = object.metadata;
  const findings = new Findings(refOf(context.source, object));
  const spec = new Field(object.spec, 'spec', findings).expectObject();
  // VirtualServices write a dot before a Gateway's namespace.
  if (!isLabel(name)) findings.report('metadata.name', 'Invalid', `${quote(name)} must be a DNS label, without dots.`);
  const servers = spec.get('servers').objects();
  if (servers.length === 0) spec.get('servers').invalid('must have at least one server.');
  if (servers.length > mostServers)
    spec
      .get('servers')
      .invalid(
        `has ${servers.length} servers; at most ${mostServers} are allowed. Give one server several hosts, or split the Gateway.`,
      );
  const names = new Set<string>();
  const model: GatewayModel = {
    key: objectKey(context.source, namespace, name),
    ref: findings.object,
    name,
    namespace,
    createdAt: creationTimestamp,
    selector: spec.get('selector').stringMap(),
    servers: servers.map((server) => readServer(server, namespace, names)),
  };
  const { problems } = findings;
  // What has no effect anyway needs no second message.
  const unsupported = findUnsupported(findings.object, object.spec).filter(
    ({ field }) => !problems.some((problem) => problem.field === field),
  );
  return { models: findings.invalid ? [] : [model], problems: [...problems, ...unsupported] };
}

function readServer(field: Field, namespace: string, names: Set<string>): GatewayServer {
  const bind = readBind(field.get('bind'));
  const port = readPort(field.get('port'), bind.startsWith('unix://'), names);
  const hosts = field.get('hosts');
  const read = hosts.list().map((host) => readHost(host, namespace));
  if (read.length === 0) hosts.invalid('must have at least one host; * matches all.');
  const tls = field.get('tls').expectObject();
  const serves = readServerTls(tls, port.protocol);
  if (serves.kind === 'autoPassthrough') checkNamespaces(hosts);
  else if (serves.kind !== 'http' && serves.kind !== 'tcp') checkServerNames(hosts);
  return {
    field: field.path,
    name: field.get('name').string(),
    port,
    bind,
    hosts: read.flat(),
    httpsRedirect: tls.get('httpsRedirect').boolean() ?? false,
    serves,
  };
}

function readPort(field: Field, unix: boolean, names: Set<string>): ServerPort {
  const number = field.expectObject().get('number');
  const value = unix ? number.integer(0, 0) : number.integer(1, 65_535);
  if (!number.isSet && !unix) number.invalid('must be the port to open.');
  const name = field.get('name');
  const text = name.string();
  if (text === '') name.invalid('must name the port.');
  else if (names.has(text)) name.invalid(`${quote(text)} is the name of another port of this Gateway; use another.`);
  names.add(text);
  const protocol = field.get('protocol');
  const parsed = parseProtocol(protocol.string());
  const kind = protocolClass(parsed);
  if (kind === 'sniffed' || kind === 'udp')
    protocol.invalid(
      `${quote(protocol.string())} cannot be served by a Gateway; use HTTP, HTTP2, GRPC, GRPC-WEB, HTTPS, TLS, TCP, MONGO, REDIS or MYSQL.`,
    );
  return { number: value ?? 0, name: text, protocol: parsed };
}

function readBind(field: Field): string {
  const bind = canonicalAddress(field.string());
  const valid = isSocket(bind) ? isSocketPath(bind) : bind === '' || isAddress(bind);
  if (!valid)
    field.invalid(`${quote(bind)} is neither an IP address nor a unix socket (unix:///path or unix://@name).`);
  return bind;
}

/** `host` or `namespace/host`. */
function readHost(field: Field, own: string): ServerHost[] {
  const text = field.string();
  const slash = text.indexOf('/');
  const scope = slash < 0 ? '*' : text.slice(0, slash);
  const host = text.slice(slash + 1);
  if (scope !== '*' && scope !== '.' && !isLabel(scope))
    field.invalid(`${quote(scope)} is not a namespace; use a name, *, or . for this one.`);
  else if (!isAddress(host) && (!isHostName(host) || (host !== '*' && !host.includes('.'))))
    field.invalid(`${quote(host)} is not a full host name such as www.example.com or *.example.com.`);
  else return [{ namespace: scope === '.' ? own : scope, host: canonicalHost(host) }];
  return [];
}

/** Envoy rejects a server name with a wildcard for part of a label. */
function checkServerNames(hosts: Field): void {
  for (const element of hosts.list()) {
    const text = typeof element.value === 'string' ? element.value : '';
    if (/^\*[^.]/.test(text.slice(text.indexOf('/') + 1)))
      element.invalid(`${quote(text)} has a wildcard for part of a name, which only plaintext HTTP allows.`);
  }
}

/** Here, hosts are those of services, and no VirtualService is asked. Source: Istio, which cuts namespaces off. */
function checkNamespaces(hosts: Field): void {
  for (const element of hosts.list()) {
    const text = typeof element.value === 'string' ? element.value : '';
    if (text.includes('/') && !text.startsWith('*/'))
      element.findings.report(
        element.path,
        'Ineffective',
        `${quote(text)} applies to services in all namespaces: in mode AUTO_PASSTHROUGH, a namespace has no effect. Limit the server by a host such as *.shop.svc.cluster.local.`,
      );
  }
}

function isLabel(text: string): boolean {
  return /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text);
}
