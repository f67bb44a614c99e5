import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkloadCertificate } from './mesh-ca.ts';
import { pathOf } from './peer.ts';
import { poll, run, startProcess } from './process.ts';

export interface EnvoyOptions {
  /** Which version of it; absent: the one that tests run with. */
  readonly version?: EnvoyVersion;
  /** Port of the control plane, on 127.0.0.1 if there is no `place`. */
  readonly adsPort: number;
  readonly delta: boolean;
  /** TLS to the control plane, which is its secure port. Absent: plaintext. */
  readonly tls?: WorkloadCertificate;
  readonly node: EnvoyNode;
  /** Bootstrap as JSON; its static clusters and listeners are added, other fields replace ours. */
  readonly extraBootstrap?: Bootstrap;
  /** Additional arguments, e.g. `['-l', 'debug']`. */
  readonly args?: readonly string[];
  /** Threads that serve; one by default. */
  readonly workers?: number;
  /** Where relative paths in its configuration begin; absent: here. */
  readonly cwd?: string;
  /** Absent: among everything else on this machine. */
  readonly place?: EnvoyPlace;
  readonly signal?: AbortSignal;
}

export type EnvoyVersion = 'envoy' | 'former-envoy';

/** A network in which an Envoy can run. */
export interface EnvoyPlace {
  /** Runs the command that follows there. */
  readonly command: readonly string[];
  /** Of the control plane. */
  readonly controlPlane: string;
  /** On which tests reach the admin interface. */
  readonly admin: string;
}

export interface EnvoyNode {
  readonly id: string;
  readonly cluster?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly locality?: { readonly region?: string; readonly zone?: string; readonly subZone?: string };
}

/** `envoy.config.bootstrap.v3.Bootstrap` as protobuf JSON. */
export interface Bootstrap {
  readonly staticResources?: { readonly clusters?: readonly object[]; readonly listeners?: readonly object[] };
  readonly [member: string]: unknown;
}

export interface RunningEnvoy {
  /** `http://127.0.0.1:PORT` */
  readonly adminUrl: string;
  readonly pid: number;
  /** Settles once Envoy has its first configuration (`/ready` says LIVE). */
  ready(): Promise<void>;
  /** The admin interface's response; throws for a status that is not 2xx. */
  admin(path: string, method?: 'GET' | 'POST'): Promise<string>;
  configDump(): Promise<ConfigDump>;
  /** Counters and gauges whose name matches. */
  stats(filter: string): Promise<Readonly<Record<string, number>>>;
  log(): string;
  /** Settles once it has ended: the exit code, or the name of the signal. */
  readonly exited: Promise<number | NodeJS.Signals>;
  stop(): Promise<void>;
}

/** `/config_dump?include_eds`, by section. Contents are protobuf JSON in snake case, as Envoy writes them. */
export interface ConfigDump {
  readonly clusters: readonly DumpEntry[];
  readonly listeners: readonly DumpEntry[];
  readonly routes: readonly DumpEntry[];
  readonly endpoints: readonly DumpEntry[];
}

/** One resource received over xDS. */
export interface DumpEntry {
  readonly name: string;
  readonly version: string;
  readonly resource: Readonly<Record<string, unknown>>;
  /** For a listener whose newest version was rejected. */
  readonly error?: string;
}

/**
 * Starts a real Envoy with this control plane. It rejects unknown fields. Call `ready` to wait for its configuration,
 * and always call `stop`.
 */
export async function startEnvoy(options: EnvoyOptions): Promise<RunningEnvoy> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-envoy-'));
  const file = join(directory, 'envoy.json');
  const addressFile = join(directory, 'admin');
  await writeFile(file, JSON.stringify(bootstrapOf(options)));
  const { signal, workers = 1, place, version = 'envoy' } = options;
  const [program = '', ...before] = [...(place?.command ?? []), pathOf(version)];
  const envoy = startProcess(
    program,
    [
      ...before,
      ...['-c', file, '--admin-address-path', addressFile, '--reject-unknown-dynamic-fields'],
      ...['--disable-hot-restart', '--concurrency', `${workers}`, '-l', 'warning', ...(options.args ?? [])],
    ],
    { signal, ...(options.cwd && { cwd: options.cwd }) },
  );
  const stop = async (): Promise<void> => {
    await envoy.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const address = await poll(
      'Envoy',
      async () => (await readFile(addressFile, 'utf8').catch(() => '')).trim() || undefined,
      { process: envoy, signal },
    );
    const adminUrl = `http://${address}`;
    const admin = async (path: string, method: 'GET' | 'POST' = 'GET'): Promise<string> => {
      const response = await fetch(adminUrl + path, { method });
      const text = await response.text();
      if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
      return text;
    };
    return {
      adminUrl,
      pid: envoy.pid,
      admin,
      ready: async () => {
        await poll('Envoy is live', () => admin('/ready').catch(() => undefined), { process: envoy, signal });
      },
      configDump: async () => readDump(JSON.parse(await admin('/config_dump?include_eds')) as RawDump),
      stats: async (filter) => {
        const { stats } = JSON.parse(await admin(`/stats?format=json&filter=${encodeURIComponent(filter)}`)) as {
          stats: { name?: string; value?: unknown }[];
        };
        // Histograms have no name, and some values are text.
        return Object.fromEntries(
          stats.flatMap(({ name, value }) => (name && typeof value === 'number' ? [[name, value]] : [])),
        );
      },
      log: () => envoy.log(),
      exited: envoy.exited,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Envoy's verdict on static configuration (`--mode validate`); opens no sockets, takes 50 ms. */
export async function validateBootstrap(
  bootstrap: Bootstrap,
): Promise<{ readonly ok: true } | { readonly ok: false; readonly message: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-envoy-'));
  try {
    const file = join(directory, 'envoy.json');
    await writeFile(file, JSON.stringify(bootstrap));
    const { code, stderr } = await run(pathOf('envoy'), [
      ...['--mode', 'validate', '-c', file, '--disable-hot-restart', '--concurrency', '1', '-l', 'error'],
    ]);
    if (code === 0) return { ok: true };
    return { ok: false, message: stderr.replace(/^.*?error initializing configuration '[^']*': /s, '').trimEnd() };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function bootstrapOf({ adsPort, delta, node, tls, place, extraBootstrap = {} }: EnvoyOptions): Bootstrap {
  const { staticResources = {}, ...rest } = extraBootstrap;
  const fromAds = { ads: {}, resourceApiVersion: 'V3', initialFetchTimeout: '0s' };
  const controlPlane = {
    name: 'xds-grpc',
    type: 'STATIC',
    connectTimeout: '1s',
    typedExtensionProtocolOptions: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicitHttpConfig: { http2ProtocolOptions: {} },
      },
    },
    ...(tls && { transportSocket: transportSocket(tls) }),
    loadAssignment: {
      clusterName: 'xds-grpc',
      endpoints: [{ lbEndpoints: [{ endpoint: { address: addressOf(place?.controlPlane ?? '127.0.0.1', adsPort) } }] }],
    },
  };
  return {
    node: { cluster: 'test', ...node },
    admin: { address: addressOf(place?.admin ?? '127.0.0.1', 0) },
    dynamicResources: {
      adsConfig: {
        apiType: delta ? 'DELTA_GRPC' : 'GRPC',
        transportApiVersion: 'V3',
        setNodeOnFirstMessageOnly: true,
        grpcServices: [{ envoyGrpc: { clusterName: 'xds-grpc' } }],
      },
      cdsConfig: fromAds,
      ldsConfig: fromAds,
    },
    staticResources: {
      clusters: [controlPlane, ...(staticResources.clusters ?? [])],
      listeners: staticResources.listeners ?? [],
    },
    ...rest,
  };
}

function transportSocket({ certificate, key, roots, name }: WorkloadCertificate): object {
  const text = (inlineString: string): object => ({ inlineString });
  return {
    name: 'envoy.transport_sockets.tls',
    typedConfig: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      sni: name,
      commonTlsContext: {
        tlsCertificates: [{ certificateChain: text(certificate), privateKey: text(key) }],
        validationContext: {
          trustedCa: text(roots),
          matchTypedSubjectAltNames: [{ sanType: 'DNS', matcher: { exact: name } }],
        },
      },
    },
  };
}

function addressOf(address: string, portValue: number): object {
  return { socketAddress: { address, portValue } };
}

interface RawDump {
  readonly configs: readonly { readonly '@type': string; readonly [list: string]: unknown }[];
}

interface RawEntry {
  readonly name?: string;
  readonly version_info?: string;
  readonly active_state?: RawEntry;
  readonly error_state?: { readonly details?: string };
  readonly [resource: string]: unknown;
}

function readDump(dump: RawDump): ConfigDump {
  const entries = (section: string, list: string, member: string): DumpEntry[] => {
    const found = dump.configs.find((config) => config['@type'].endsWith(`.${section}`));
    return ((found?.[list] ?? []) as readonly RawEntry[]).map((entry) => {
      const state = entry.active_state ?? entry;
      const resource = (state[member] ?? {}) as Readonly<Record<string, unknown>>;
      const name = entry.name ?? resource['name'] ?? resource['cluster_name'];
      const error = entry.error_state?.details;
      return { name: String(name), version: state.version_info ?? '', resource, ...(error && { error }) };
    });
  };
  return {
    clusters: [
      ...entries('ClustersConfigDump', 'dynamic_active_clusters', 'cluster'),
      ...entries('ClustersConfigDump', 'dynamic_warming_clusters', 'cluster'),
    ],
    listeners: entries('ListenersConfigDump', 'dynamic_listeners', 'listener'),
    routes: entries('RoutesConfigDump', 'dynamic_route_configs', 'route_config'),
    endpoints: entries('EndpointsConfigDump', 'dynamic_endpoint_configs', 'endpoint_config'),
  };
}
