import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { install, type Installed, type Replica } from '../e2e/installed.ts';
import { NAMESPACE as SYSTEM } from '../chart/chart.ts';
import type { ApiObject } from '../peers/api-server.ts';
import { type ConfigDump, type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { ApiWay } from './api-way.ts';
import { getsTo, Load, startPods } from './load.ts';
import { ProxyWay } from './proxy-way.ts';
import { hostOf, NAMESPACE, Shop } from './shop.ts';

export interface LabOptions {
  readonly services: number;
  readonly random: () => number;
  /** Settings of the replicas other than those of the chart. */
  readonly environment?: NodeJS.ProcessEnv;
}

/** A replica, and what is between it and the API server. */
export interface Member extends Replica {
  readonly way: ApiWay;
}

/** A real Envoy under load. */
interface Proxy {
  readonly name: string;
  readonly envoy: RunningEnvoy;
  readonly way: ProxyWay;
  readonly port: number;
}

/** One write of the Lease, as a watch of it tells. */
interface Holding {
  readonly holder: string;
  readonly resourceVersion: bigint;
}

/** Whatever went wrong mends itself within this time: the longest back-off, a list in doubt, a lost Lease. */
export const PATIENCE_MS = 60_000;

/**
 * Fairlead as its chart installs it, two replicas with a faulty way to a real API server each; a real Envoy of either
 * variant of ADS, and requests through them all the time to backends that are always ready.
 */
export class Lab {
  /** Those that run. */
  members: readonly Member[] = [];
  readonly load: Load;
  readonly shop: Shop;
  readonly holdings: Holding[] = [];
  readonly #cluster: Installed;
  readonly #options: LabOptions;
  readonly #proxies: Proxy[] = [];
  /** Also those that have ended. */
  readonly #everyone: Member[] = [];
  readonly #end: (() => unknown)[];
  readonly #stopping = new AbortController();

  private constructor(options: LabOptions, cluster: Installed, podPort: number, end: (() => unknown)[]) {
    this.#options = options;
    this.#cluster = cluster;
    this.#end = end;
    this.load = new Load(options.random);
    this.shop = new Shop(cluster.api, options.services, podPort, options.random);
  }

  /** `stop` it. */
  static async start(options: LabOptions): Promise<Lab> {
    const end: (() => unknown)[] = [];
    try {
      const [podPort = 0] = await freePorts(1);
      const pods = await startPods(podPort);
      end.push(() => pods.close());
      const cluster = await install();
      end.push(() => cluster.stop());
      const lab = new Lab(options, cluster, podPort, end);
      await lab.#start();
      return lab;
    } catch (error) {
      for (const each of end.reverse()) await each();
      throw error;
    }
  }

  get api(): Installed['api'] {
    return this.#cluster.api;
  }

  log(): string {
    return this.#everyone.map(({ pod, process }) => `--- ${pod}\n${process.log()}`).join('\n');
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const each of this.#end.reverse()) await each();
  }

  /** Names of the Pods that Fairlead's Deployment has. */
  pods(): Promise<string[]> {
    return this.#cluster.pods();
  }

  /** Runs Fairlead in this Pod; the former process of the Pod, if any, must have ended. */
  async startMember(pod: string): Promise<Member> {
    const way = await ApiWay.start(this.api, this.#options.random);
    this.#end.push(() => way.close());
    const member = {
      ...(await this.#cluster.start(pod, { through: way.url, environment: this.#options.environment ?? {} })),
      way,
    };
    this.members = [...this.members, member];
    this.#everyone.push(member);
    return member;
  }

  /** Settles when it has ended, whatever the signal lets it do until then: its exit code, or the signal. */
  async end(member: Member, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | NodeJS.Signals> {
    this.members = this.members.filter((each) => each !== member);
    process.kill(member.process.pid, signal);
    return member.process.exited;
  }

  /** Proxies that connect from now on go to these members: each prefers another one. */
  use(...members: readonly Member[]): void {
    const ports = members.map(({ securePort }) => securePort);
    this.#proxies.forEach(({ way }, i) =>
      way.lead(...ports.slice(i % ports.length), ...ports.slice(0, i % ports.length)),
    );
  }

  /** The replica that the Lease names, if it runs. */
  async leader(): Promise<Member | undefined> {
    const { spec } = (await this.#lease()) as { readonly spec?: { readonly holderIdentity?: string } };
    return this.members.find(({ pod }) => `${SYSTEM}/${pod}` === spec?.holderIdentity);
  }

  /** Whether the holder of the Lease is late, by the Lease's own times. */
  async leaseHasRunOut(): Promise<boolean> {
    const { spec } = (await this.#lease()) as { spec: { renewTime: string; leaseDurationSeconds: number } };
    return Date.now() > Date.parse(spec.renewTime) + spec.leaseDurationSeconds * 1_000;
  }

  async writeLease(spec: object): Promise<void> {
    const found = await this.#lease();
    await this.api.call('PUT', LEASE, { ...found, spec: { ...(found['spec'] as object), ...spec } });
  }

  /** Everything is as a replica that starts now would have it, and so are the conditions. */
  async settled(): Promise<void> {
    await told('conditions', () => this.shop.wrongConditions());
    await this.served();
  }

  /** Proxies have what they would have from a replica that starts now. */
  async served(): Promise<void> {
    await told('held endpoints', () => this.#held());
    await told('requests that get to other Pods', () => this.#strays());
    const fresh = await this.#fresh();
    try {
      await told('differences from a proxy that has just started', () => this.#differences(fresh.proxy));
    } finally {
      await fresh.stop();
    }
  }

  /** Status writes by a replica that was not the leader at the time, by the order in etcd. */
  usurpations(): readonly string[] {
    return this.#everyone.flatMap(({ pod, way }) =>
      way.statusWrites.flatMap(({ object, resourceVersion }) => {
        const holder = this.holdings.findLast((holding) => holding.resourceVersion < resourceVersion)?.holder;
        return holder === `${SYSTEM}/${pod}`
          ? []
          : [`${object} at ${resourceVersion} by ${pod}; the leader was ${holder}`];
      }),
    );
  }

  #lease(): Promise<ApiObject> {
    return this.api.call('GET', LEASE);
  }

  async #start(): Promise<void> {
    const [one = '', two = ''] = await this.pods();
    const following = this.#followLease().catch((error: unknown) => {
      if (!this.#stopping.signal.aborted) throw error;
    });
    this.#end.push(() => following);
    const members = await Promise.all([this.startMember(one), this.startMember(two), this.shop.open()]);
    await Promise.all([members[0].ready(), members[1].ready()]);
    for (const [name, delta] of [
      ['delta', true],
      ['sotw', false],
    ] as const) {
      const proxy = await this.#startProxy(name, delta);
      this.#proxies.push(proxy);
      this.#end.push(() => stopProxy(proxy));
    }
    this.use(members[0], members[1]);
    await Promise.all(this.#proxies.map(({ envoy }) => envoy.ready()));
    await told('requests that do not get anywhere', () => this.#strays());
    for (const { name, port } of this.#proxies)
      for (const service of this.shop.services) this.load.run(name, port, hostOf(service));
    this.#end.push(() => this.load.stop());
  }

  async #startProxy(name: string, delta: boolean): Promise<Proxy> {
    const way = await ProxyWay.open(await this.#cluster.certify(NAMESPACE, name));
    const [port = 0] = await freePorts(1);
    const envoy = await startEnvoy({
      adsPort: way.port,
      delta,
      node: {
        id: `sidecar~10.0.0.9~${name}.${NAMESPACE}~${NAMESPACE}.svc.cluster.local`,
        metadata: {
          ...{ NAMESPACE, SERVICE_ACCOUNT: name },
          ...{ INTERCEPTION_MODE: 'NONE', HTTP_PROXY_PORT: `${port}`, UNPRIVILEGED_POD: 'true' },
        },
      },
    });
    return { name, envoy, way, port };
  }

  /** Requests that get to Pods that are not, or no longer, of the service. */
  async #strays(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const service of this.shop.services) {
      const addresses = await this.shop.addressesOf(service);
      for (const { name, port } of this.#proxies)
        if (!(await getsTo(port, hostOf(service), addresses))) found.push(`${name} ${service}`);
    }
    return found;
  }

  async #held(): Promise<readonly string[]> {
    const pages = await Promise.all(this.members.map(async ({ debug }) => (await debug('held')) as readonly object[]));
    return pages.flat().map((each) => JSON.stringify(each));
  }

  /** A replica that knows nothing but what the API server says now, and an Envoy that knows nothing but what it says. */
  async #fresh(): Promise<{ readonly proxy: Proxy; stop(): Promise<void> }> {
    const [pod = ''] = await this.pods();
    const replica = await this.#cluster.start(pod, { aside: true });
    await replica.ready();
    const proxy = await this.#startProxy('delta', true);
    proxy.way.lead(replica.securePort);
    await proxy.envoy.ready();
    return {
      proxy,
      stop: async () => {
        await stopProxy(proxy);
        await replica.process.stop();
      },
    };
  }

  /** Names of what a proxy has that is not what the fresh one has. */
  async #differences(fresh: Proxy): Promise<readonly string[]> {
    const wanted = await contentOf(fresh);
    const found: string[] = [];
    for (const proxy of this.#proxies) {
      const content = await contentOf(proxy);
      for (const key of new Set([...content.keys(), ...wanted.keys()]))
        if (!isDeepStrictEqual(content.get(key), wanted.get(key))) found.push(`${proxy.name}: ${key}`);
    }
    return found;
  }

  async #followLease(): Promise<void> {
    const path = `${LEASE.replace(/\/[^/]+$/, '')}?watch=1`;
    for await (const line of this.api.lines(path, this.#stopping.signal)) {
      const { object } = JSON.parse(line) as { readonly object: ApiObject };
      const { name, resourceVersion } = object.metadata as { name: string; resourceVersion: string };
      const { holderIdentity = '' } = object['spec'] as { holderIdentity?: string };
      if (LEASE.endsWith(`/${name}`))
        this.holdings.push({ holder: holderIdentity, resourceVersion: BigInt(resourceVersion) });
    }
  }
}

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fairlead';

/** Resident memory of a process, in bytes. */
export async function memoryOf({ process }: Replica): Promise<number> {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${process.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

async function stopProxy({ envoy, way }: Proxy): Promise<void> {
  await envoy.stop();
  way.close();
}

/** What an Envoy has, by type and name, as if it listened where the others do. The order of endpoints is its own. */
async function contentOf({ envoy, port }: Proxy): Promise<ReadonlyMap<string, unknown>> {
  const found = new Map<string, unknown>();
  const dump = JSON.parse(JSON.stringify(await envoy.configDump()).replaceAll(`${port}`, '1')) as ConfigDump;
  for (const [type, entries] of Object.entries(dump) as [string, ConfigDump['clusters']][])
    for (const { name, resource } of entries) found.set(`${type} ${name}`, sorted(resource));
  return found;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    const all = value.map(sorted);
    return all.every((each) => typeof each === 'object' && each !== null && 'endpoint' in each)
      ? all.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
      : all;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, sorted(each)]));
}

/** Polls until nothing is found any more; fails with what is. */
async function told(what: string, find: () => Promise<readonly string[]>): Promise<void> {
  let found: readonly string[] = [];
  await poll(
    what,
    async () => {
      found = await find();
      return found.length === 0 ? true : undefined;
    },
    { timeoutMs: PATIENCE_MS },
  ).catch((cause: unknown) => {
    throw new Error(`${what}:\n${found.join('\n')}`, { cause });
  });
}
