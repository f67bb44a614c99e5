import { setTimeout as delay } from 'node:timers/promises';
import { ApiError, type ApiObject, type RunningApiServer } from '../peers/api-server.ts';
import { poll } from '../peers/process.ts';

export const NAMESPACE = 'shop';
/** That a Service's Pods are called at. */
export const PORT = 80;
const VERSIONS = ['v1', 'v2'] as const;
/** The end of the names of Deployments whose Pods come and go. */
const MORE = '-more';
const MOST_MORE = 3;
/** Objects that come and go. */
const MOST_EXTRAS = 6;

export const serviceName = (number: number): string => `s-${number}`;
export const hostOf = (service: string): string => `${service}.${NAMESPACE}.svc.cluster.local`;

interface Path {
  readonly kind: string;
  readonly apiVersion: string;
  readonly plural: string;
}

const KINDS = {
  service: { kind: 'Service', apiVersion: 'v1', plural: 'services' },
  deployment: { kind: 'Deployment', apiVersion: 'apps/v1', plural: 'deployments' },
  rule: { kind: 'DestinationRule', apiVersion: 'networking.istio.io/v1', plural: 'destinationrules' },
  routes: { kind: 'VirtualService', apiVersion: 'networking.istio.io/v1', plural: 'virtualservices' },
  entry: { kind: 'ServiceEntry', apiVersion: 'networking.istio.io/v1', plural: 'serviceentries' },
  sidecar: { kind: 'Sidecar', apiVersion: 'networking.istio.io/v1', plural: 'sidecars' },
} as const satisfies Readonly<Record<string, Path>>;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly observedGeneration?: number;
}

/**
 * Services with Pods of two versions, and what routes to them. {@link change} changes something at random. Faults make a
 * replica see kinds at different times, so each change is sound by itself: of each version there is one Pod that stays,
 * and no route names anything that comes or goes.
 */
export class Shop {
  readonly services: readonly string[];
  readonly #api: RunningApiServer;
  readonly #port: number;
  readonly #random: () => number;
  /** Names of the VirtualServices that nobody should accept. */
  readonly #invalid = new Set<string>();
  readonly #extras = new Map<string, keyof typeof KINDS>();
  #made = 0;

  /** @param port that programs in Pods listen on. */
  constructor(api: RunningApiServer, services: number, port: number, random: () => number) {
    this.#api = api;
    this.#port = port;
    this.#random = random;
    this.services = Array.from({ length: services }, (_, number) => serviceName(number));
  }

  /** Settles when all Pods are ready. */
  async open(): Promise<void> {
    await this.#api.call('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } });
    // A proxy without interception would listen on the ports of all others.
    await this.#put('sidecar', 'default', { spec: { egress: [{ hosts: ['./*'] }] } });
    for (const service of this.services) {
      const ports = [{ name: 'http', port: PORT, targetPort: this.#port }];
      await this.#put('service', service, { spec: { selector: { app: service }, ports } });
      for (const version of VERSIONS) {
        await this.#put('deployment', `${service}-${version}`, deployment(service, version, 'stays', 1));
        await this.#put('deployment', `${service}-${version}${MORE}`, deployment(service, version, 'moves', 0));
      }
      await this.#put('rule', service, this.#rule(service));
      await this.#put('routes', service, this.#routes(service));
    }
    await poll('all Pods', async () => {
      const pods = await this.#readyPods();
      return pods.length === this.services.length * VERSIONS.length ? true : undefined;
    });
  }

  /** Says what it was. */
  async change(): Promise<string> {
    const service = this.#pick(this.services);
    switch (this.#pick(['routes', 'routes', 'invalid', 'rule', 'scale', 'pod', 'extra', 'extra'] as const)) {
      case 'routes':
        await this.#put('routes', service, this.#routes(service));
        return `routes of ${service}`;
      case 'invalid':
        await this.#put('routes', service, withMistake(this.#routes(service)));
        this.#invalid.add(service);
        return `a mistake in ${service}`;
      case 'rule':
        await this.#put('rule', service, this.#rule(service));
        return `rule of ${service}`;
      case 'scale':
        return this.#scale(`${service}-${this.#pick(VERSIONS)}${MORE}`);
      case 'pod':
        return this.#deletePod(service);
      case 'extra':
        return this.#extra();
    }
  }

  /** No former generation is needed any longer: a program that starts now sees what the others see. */
  async mend(): Promise<void> {
    for (const service of [...this.#invalid]) await this.#put('routes', service, this.#routes(service));
  }

  /** Addresses of the ready Pods of a service, as the API server knows them. */
  async addressesOf(service: string): Promise<readonly string[]> {
    const pods = await this.#readyPods();
    return pods
      .filter(({ app }) => app === service)
      .map(({ address }) => address)
      .sort();
  }

  /** What is not as it should be with the conditions of an object, for each such object. */
  async wrongConditions(): Promise<readonly string[]> {
    const wrong: string[] = [];
    for (const which of ['routes', 'rule', 'entry'] as const) {
      const { items } = (await this.#api.call('GET', pathOf(which))) as unknown as { items: ApiObject[] };
      for (const { metadata, status } of items) {
        const { name, generation } = metadata as { name: string; generation: number };
        const wanted = which === 'routes' && this.#invalid.has(name) ? 'False' : 'True';
        const { conditions = [] } = (status ?? {}) as { conditions?: readonly Condition[] };
        for (const type of ['Accepted', 'Programmed']) {
          const found = conditions.find((condition) => condition.type === type);
          if (found?.status !== wanted || found.observedGeneration !== generation)
            wrong.push(`${which} ${name} (${generation}): ${type} is not ${wanted}: ${JSON.stringify(found)}`);
        }
      }
    }
    return wrong;
  }

  #routes(service: string): { readonly spec: Spec } {
    const weight = Math.floor(this.#random() * 101);
    const destination = (subset: string): object => ({ host: hostOf(service), subset });
    const route = [
      { destination: destination('v1'), weight },
      { destination: destination('v2'), weight: 100 - weight },
    ];
    // Connections end with Pods that clients have not been told of yet, and more.
    const retries = { attempts: 0 };
    const timeout = `${10 + Math.floor(this.#random() * 20)}s`;
    return { spec: { hosts: [hostOf(service)], http: [{ name: `n-${++this.#made}`, route, retries, timeout }] } };
  }

  #rule(service: string): object {
    return {
      spec: {
        host: hostOf(service),
        trafficPolicy: { connectionPool: { http: { http2MaxRequests: 1_000 + Math.floor(this.#random() * 1_000) } } },
        subsets: VERSIONS.map((version) => ({ name: version, labels: { version } })),
      },
    };
  }

  async #scale(name: string): Promise<string> {
    const replicas = Math.floor(this.#random() * (MOST_MORE + 1));
    await again(() => this.#api.call('PATCH', `${pathOf('deployment')}/${name}`, { spec: { replicas } }));
    return `${name} to ${replicas} Pods`;
  }

  async #deletePod(service: string): Promise<string> {
    const pods = (await this.#readyPods()).filter(({ name, app }) => app === service && name.includes(MORE));
    if (pods.length === 0) return `nothing: no Pod of ${service} to delete`;
    const { name } = this.#pick(pods);
    await again(() => this.#api.call('DELETE', `/api/v1/namespaces/${NAMESPACE}/pods/${name}`));
    return `${name} deleted`;
  }

  async #extra(): Promise<string> {
    if (this.#extras.size >= MOST_EXTRAS || (this.#extras.size > 0 && this.#random() < 0.4)) {
      const [name, kind] = this.#pick([...this.#extras]);
      this.#extras.delete(name);
      this.#invalid.delete(name);
      await again(() => this.#api.call('DELETE', `${pathOf(kind)}/${name}`));
      return `${name} deleted`;
    }
    const number = ++this.#made;
    const hosts = [`extra-${number}.example.com`];
    if (this.#random() < 0.5) {
      const ports = [{ number: PORT, name: 'http', protocol: 'HTTP' }];
      await this.#put('entry', `extra-${number}`, { spec: { hosts, ports, resolution: 'DNS' } });
      this.#extras.set(`extra-${number}`, 'entry');
    } else {
      const routes = { spec: { hosts, http: [{ directResponse: { status: 204 } }] } };
      const isWrong = this.#random() < 0.5;
      const name = `extra-${number}`;
      await this.#put('routes', name, isWrong ? withMistake(routes) : routes);
      if (isWrong) this.#invalid.add(name);
      this.#extras.set(name, 'routes');
    }
    return `extra-${number}`;
  }

  async #put(which: keyof typeof KINDS, name: string, content: object): Promise<void> {
    const { apiVersion, kind } = KINDS[which];
    const labels = name.startsWith('s-') ? { app: name } : {};
    const object = { apiVersion, kind, metadata: { name, namespace: NAMESPACE, labels }, ...content };
    await again(async () => {
      const found = await this.#api.call('GET', `${pathOf(which)}/${name}`).catch((error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      });
      if (found === undefined) return this.#api.call('POST', pathOf(which), object);
      return this.#api.call('PUT', `${pathOf(which)}/${name}`, { ...found, ...content });
    });
    if (which === 'routes') this.#invalid.delete(name);
  }

  async #readyPods(): Promise<readonly Pod[]> {
    const { items } = (await this.#api.call('GET', `/api/v1/namespaces/${NAMESPACE}/pods`)) as unknown as {
      readonly items: readonly {
        readonly metadata: { name: string; deletionTimestamp?: string; labels: { app: string } };
        readonly status: { podIP?: string; conditions?: readonly Condition[] };
      }[];
    };
    return items.flatMap(({ metadata: { name, deletionTimestamp, labels }, status: { podIP, conditions = [] } }) => {
      const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
      if (deletionTimestamp !== undefined || podIP === undefined || !isReady) return [];
      return [{ name, app: labels.app, address: podIP }];
    });
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)]!;
  }
}

interface Pod {
  readonly name: string;
  readonly app: string;
  readonly address: string;
}

interface Spec {
  readonly hosts: readonly string[];
  readonly http: readonly object[];
}

/** One that the API server accepts, and Fairlead does not. */
function withMistake({ spec }: { readonly spec: Spec }): object {
  const match = [{ uri: { regex: '(?=x)' } }];
  return { spec: { ...spec, http: [{ match, directResponse: { status: 200 } }, ...spec.http] } };
}

function deployment(app: string, version: string, part: string, replicas: number): object {
  const labels = { app, version, part };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'app' }] } };
  return { spec: { replicas, selector: { matchLabels: labels }, template } };
}

function pathOf(which: keyof typeof KINDS): string {
  const { apiVersion, plural } = KINDS[which];
  return `/${apiVersion === 'v1' ? 'api' : 'apis'}/${apiVersion}/namespaces/${NAMESPACE}/${plural}`;
}

const MOST_TRIES = 20;

/** Fairlead and the controllers write to the same objects. */
async function again(write: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await write();
      return;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409) || tries === MOST_TRIES) throw error;
      await delay(tries);
    }
  }
}
