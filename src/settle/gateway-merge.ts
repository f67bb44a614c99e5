import { printRef } from '../api/object.ts';
import { quote } from '../api/quote.ts';
import type { Problem, ProblemReason } from '../api/problem.ts';
import { printWinner } from '../model/age.ts';
import { type SecretProvider, asSecret, isProvided, serverResources } from '../model/credential.ts';
import { isSocket } from '../model/address.ts';
import { serverFiles } from '../model/named-files.ts';
import { mostNamed, mostNamedForOthers } from '../model/named-limits.ts';
import type { BoundServer, GatewayModel, GatewayServer, MergedListener } from '../model/gateway.ts';
import { type Traits, wildcardAddress } from '../model/traits.ts';

export interface MergeInput {
  /** The Gateways that select the router, oldest first. */
  readonly gateways: readonly GatewayModel[];
  /** The port that the router opens for a server port, as mapped by a Service in front of it. */
  readonly targetPort: (port: number) => number;
  readonly traits: Pick<Traits, 'ipFamily' | 'unprivileged' | 'reservedPorts'>;
  /** Namespace of the router. */
  readonly namespace: string;
  readonly rootNamespace: string;
  /** The router reads files that Gateways of any namespace name, not only those of its own and the root namespace. */
  readonly crossNamespaceFiles: boolean;
  /** Who has the secrets with names that begin with `sds://`: absent, the control plane; or why it cannot be asked. */
  readonly secretProvider?: SecretProvider | { readonly problem: string } | undefined;
  /** What the router gets under the name of a secret, for servers of the Gateway. */
  readonly credential: (gateway: GatewayModel, resource: string, part: 'pair' | 'roots') => CredentialState;
}

/** A secret for a proxy. */
export interface CredentialState<Content = unknown> {
  /** The proxy has it, or will have. */
  readonly content?: Content;
  /** It is not known yet. */
  readonly isPending?: true;
  /** Why there is none, or what is wrong with its newest version. */
  readonly problem?: string;
}

export interface MergedGateways {
  readonly listeners: readonly MergedListener[];
  /** For the owners of servers that lose their place. */
  readonly problems: readonly Problem[];
}

/**
 * The listeners of a router. HTTP servers share a port, and so do TLS servers if each has its own server names; any
 * other two servers at one address and port conflict, and the first one stays.
 */
export function mergeServers(input: MergeInput): MergedGateways {
  const { gateways, targetPort, traits } = input;
  const listeners = new Map<string, OpenListener>();
  const problems: Problem[] = [];
  const files = new NamedFiles(input);
  for (const gateway of gateways)
    for (const server of gateway.servers) {
      const report = (field: string, reason: ProblemReason, message: string): void => {
        problems.push({ object: gateway.ref, field: `${server.field}.${field}`, reason, message });
      };
      if (!hasSecrets(gateway, server, input, report)) continue;
      const unread = files.add(gateway, server);
      if (unread !== undefined) {
        report('tls', 'RefNotFound', `names files ${unread}`);
        continue;
      }
      const port = targetPort(server.port.number);
      const unusable = unusablePort(port, traits);
      if (unusable !== undefined) {
        report('port.number', 'Ineffective', unusable);
        continue;
      }
      const foreign = foreignSocket(gateway, server, input);
      if (foreign !== undefined) {
        report('bind', 'Ineffective', foreign);
        continue;
      }
      const everywhere = wildcardAddress(traits);
      const address = server.bind === '' ? everywhere : server.bind;
      const name = `${address}_${port}`;
      const around = isWildcardAddress(address) ? undefined : listeners.get(`${everywhere}_${port}`);
      if (around !== undefined && port > 0 && around.refuses(gateway, server, report)) continue;
      const listener = listeners.get(name) ?? new OpenListener(name, address, port, kindOf(server));
      listeners.set(name, listener);
      listener.add(gateway, server, report);
    }
  return { listeners: [...listeners.values()].map((listener) => listener.merged()), problems };
}

/** Envoy deletes what is at the path, such as the socket for the router's certificates. */
function foreignSocket(
  { namespace }: GatewayModel,
  { bind }: GatewayServer,
  router: Pick<MergeInput, 'namespace' | 'rootNamespace'>,
): string | undefined {
  if (!isSocket(bind) || namespace === router.namespace || namespace === router.rootNamespace) return undefined;
  return `A router in namespace ${router.namespace} does not open unix sockets for Gateways of other namespaces, because they may replace files; omit bind, or move the Gateway to ${router.namespace}.`;
}

const isWildcardAddress = (address: string): boolean => address === '0.0.0.0' || address === '::';

function unusablePort(port: number, { unprivileged, reservedPorts }: MergeInput['traits']): string | undefined {
  if (unprivileged && port > 0 && port < 1024)
    return `A router that may not open ports below 1024 leaves out port ${port}; give its Service a targetPort of 1024 or above.`;
  return reservedPorts.includes(port)
    ? `A router uses port ${port} itself and leaves it out; use another port, or another targetPort in its Service.`
    : undefined;
}

/** Without its secrets, a server could only abort handshakes, and its port would open late. */
function hasSecrets(
  gateway: GatewayModel,
  { serves }: GatewayServer,
  { credential, secretProvider }: MergeInput,
  report: Report,
): boolean {
  if (serves.kind !== 'https' && serves.kind !== 'tls') return true;
  const { certificates } = serves.tls;
  const { pairs, roots } = serverResources(serves.tls);
  const several = certificates.kind === 'credentials' && certificates.names.length > 1;
  const ownRoots = certificates.kind === 'credentials' && certificates.roots !== '';
  const needed = [
    ...pairs.map((name, i) => ({
      name,
      part: 'pair' as const,
      field: several ? `credentialNames[${i}]` : 'credentialName',
    })),
    ...(roots === ''
      ? []
      : [{ name: roots, part: 'roots' as const, field: ownRoots ? 'caCertCredentialName' : 'credentialName' }]),
  ];
  let hasAll = true;
  for (const { name, part, field } of needed) {
    const { isPending, problem, content } =
      secretProvider !== undefined && isProvided(name)
        ? stateOfProvider(name, secretProvider)
        : credential(gateway, asSecret(name, part), part);
    if (isPending) hasAll = false;
    if (problem === undefined) continue;
    hasAll &&= content !== undefined;
    const consequence = content === undefined ? 'this server is left out' : 'what it last contained stays in use';
    report(`tls.${field}`, 'RefNotFound', `${problem}; ${consequence}.`);
  }
  return hasAll;
}

/** Whether it has the secret, only the router finds out. */
function stateOfProvider(name: string, provider: NonNullable<MergeInput['secretProvider']>): CredentialState {
  return 'problem' in provider ? { problem: `${quote(name)} ${provider.problem}` } : { content: name };
}

/** The files that Gateways of each namespace have the router read. */
class NamedFiles {
  readonly #router: Pick<MergeInput, 'namespace' | 'rootNamespace' | 'crossNamespaceFiles'>;
  readonly #byNamespace = new Map<string, Set<string>>();

  constructor(router: Pick<MergeInput, 'namespace' | 'rootNamespace' | 'crossNamespaceFiles'>) {
    this.#router = router;
  }

  /** Undefined, or why the router does not read what the server names. */
  add({ namespace }: GatewayModel, { serves }: GatewayServer): string | undefined {
    if (serves.kind !== 'https' && serves.kind !== 'tls') return undefined;
    const files = serverFiles(serves.tls);
    if (files.length === 0) return undefined;
    const { namespace: own, rootNamespace, crossNamespaceFiles } = this.#router;
    if (namespace !== own && namespace !== rootNamespace && !crossNamespaceFiles)
      return `that a router in namespace ${own} does not read for Gateways of other namespaces; this server is left out. Use credentialName, move the Gateway to ${own}, or set --cross-namespace-files=on.`;
    const known = this.#byNamespace.get(namespace) ?? new Set<string>();
    const most = namespace === own ? mostNamed : mostNamedForOthers;
    const all = new Set([...known, ...files]);
    if (all.size > most)
      return `beyond the ${most} that Gateways in namespace ${namespace} may name on a router in namespace ${own}; this server is left out. Name fewer, or use credentialName.`;
    this.#byNamespace.set(namespace, all);
    return undefined;
  }
}

function kindOf({ serves }: GatewayServer): MergedListener['kind'] {
  if (serves.kind === 'http' || serves.kind === 'tcp') return serves.kind;
  return 'tls';
}

type Report = (field: string, reason: ProblemReason, message: string) => void;

/** An address and port while servers are being added. */
class OpenListener {
  private readonly name: string;
  private readonly address: string;
  private readonly port: number;
  private readonly kind: MergedListener['kind'];
  private readonly servers: BoundServer[] = [];
  /** The server that owns each host. */
  private readonly hosts = new Map<string, BoundServer>();

  constructor(name: string, address: string, port: number, kind: MergedListener['kind']) {
    this.name = name;
    this.address = address;
    this.port = port;
    this.kind = kind;
  }

  merged(): MergedListener {
    return { name: this.name, address: this.address, port: this.port, kind: this.kind, servers: this.servers };
  }

  /**
   * A server with its own address would take connections away from this listener, which another namespace opened on all
   * addresses.
   */
  refuses(gateway: GatewayModel, server: GatewayServer, report: Report): boolean {
    const other = this.servers.find(({ age }) => age.namespace !== gateway.namespace);
    if (other === undefined) return false;
    const message = `${portOf(this.port, server)} is open on all addresses for ${owner(other, gateway)}, and ${server.bind} would take over some of its connections; use another port, or omit bind.`;
    report('bind', 'Conflicted', message);
    return true;
  }

  /** The first server always gets a place. */
  add(gateway: GatewayModel, server: GatewayServer, report: Report): void {
    const [first] = this.servers;
    if (first !== undefined && (this.kind === 'tcp' || this.kind !== kindOf(server))) {
      report(
        'port',
        'Conflicted',
        `${portOf(this.port, server)} is used by ${owner(first, gateway)}, and ${server.port.protocol} cannot share it; use another port or bind.`,
      );
      return;
    }
    const bound: BoundServer = {
      gateway: `${gateway.namespace}/${gateway.name}`,
      age: { createdAt: gateway.createdAt, name: gateway.name, namespace: gateway.namespace },
      ref: gateway.ref,
      server,
      routes: this.kind === 'http' && first !== undefined ? first.routes : this.routesOf(gateway, server),
    };
    if (this.claimHosts(bound, gateway, report)) this.servers.push(bound);
  }

  /** A server name leads to one server, so a server that names a taken one gets no place at all. */
  private claimHosts(bound: BoundServer, gateway: GatewayModel, report: Report): boolean {
    const { server } = bound;
    const unique = this.kind === 'tls' || server.httpsRedirect;
    if (!unique) return true;
    const hosts = new Set(
      server.hosts.map(({ namespace, host }) =>
        (this.kind === 'tls' || namespace === '*' ? host : `${namespace}/${host}`).toLowerCase(),
      ),
    );
    const taken = [...hosts].find((host) => this.hosts.has(host));
    if (taken !== undefined) {
      report(
        'hosts',
        'Conflicted',
        `Host ${JSON.stringify(taken)} on ${portOf(this.port, server)} belongs to ${owner(this.hosts.get(taken)!, gateway)}, so this server is left out; remove the host from one of them.`,
      );
      return false;
    }
    for (const host of hosts) this.hosts.set(host, bound);
    return true;
  }

  /** `http.8080`, `https.443.port.gateway.namespace`; if the server names an address, it is added at the end. */
  private routesOf({ name, namespace }: GatewayModel, { serves, port, bind }: GatewayServer): string {
    const suffix = bind === '' ? '' : `.${bind}`;
    if (serves.kind === 'http') return `http.${this.port}${suffix}`;
    if (serves.kind === 'https') return `https.${port.number}.${port.name}.${name}.${namespace}${suffix}`;
    return '';
  }
}

function owner(winner: BoundServer, gateway: GatewayModel): string {
  return winner.gateway === `${gateway.namespace}/${gateway.name}`
    ? `${winner.server.field} of this Gateway`
    : printWinner(printRef(winner.ref), winner.age, gateway);
}

function portOf(port: number, server: GatewayServer): string {
  if (port === 0) return server.bind;
  return port === server.port.number ? `port ${port}` : `port ${port} (the target of port ${server.port.number})`;
}
