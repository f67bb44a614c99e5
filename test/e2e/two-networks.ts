import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { destinationRule, gateway, object, sidecar } from '../features/objects.ts';
import { Program } from '../features/program.ts';
import { securePort } from '../features/secure-cluster.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import type { MeshCa } from '../peers/mesh-ca.ts';
import { startAgent } from './agent.ts';
import { application } from './application.ts';
import { type Networks, podAddress, startNetworks } from './networks.ts';
import { type Frontend, type SteadyClient, startFrontend, startSteadyClient } from './traffic.ts';

/** Where something runs. The own cluster is on network `one`, the other one on network `two`. */
export type ClusterName = 'own' | 'west';

/** As their proxies call them. */
const IDS = { own: 'Kubernetes', west: 'west' } as const;
const NETWORKS = { own: 'one', west: 'two' } as const;
/** Of Pods, of the service, and of the gateway: nothing else listens in these networks. */
const PORTS = { pod: 8080, service: 8000, gateway: 15443 } as const;

/** One mesh of two clusters with an API server each, on two networks, and what runs there. */
export class TwoNetworks {
  readonly apis: Readonly<Record<ClusterName, BorrowedApiServer>>;
  readonly program: Program;
  readonly networks: Networks;
  /** Between the control plane and the API server of the other cluster. */
  readonly link: Frontend;
  readonly #ca: MeshCa;
  readonly #onEnd: OnEnd;

  private constructor(
    { apis, program, networks, link }: Pick<TwoNetworks, 'apis' | 'program' | 'networks' | 'link'>,
    ca: MeshCa,
    onEnd: OnEnd,
  ) {
    this.apis = apis;
    this.program = program;
    this.networks = networks;
    this.link = link;
    this.#ca = ca;
    this.#onEnd = onEnd;
  }

  static async start(onEnd: OnEnd): Promise<TwoNetworks> {
    const networks = await startNetworks();
    onEnd(() => networks.stop());
    const [{ ca, settings }, link] = await Promise.all([securePort(onEnd), startFrontend()]);
    onEnd(() => link.close());
    const startApi = async (): Promise<BorrowedApiServer> => {
      const api = await borrowApiServer();
      onEnd(() => api.stop());
      return api;
    };
    const [own, west] = await Promise.all([startApi(), startApi()]);
    const apis = { own, west };
    await own.kubectl('apply', '--server-side', '-f', join(import.meta.dirname, '../../charts/fairlead/crds'));
    await own.kubectl('wait', '--for=condition=Established', 'crd', '--all');
    for (const cluster of ['own', 'west'] as const) {
      const api = apis[cluster];
      const labels = { 'topology.istio.io/network': NETWORKS[cluster] };
      await applyTo(api, namespace('istio-system', labels), namespace('shop'));
      await applyTo(api, object('v1', 'ServiceAccount', 'server', {}), node(cluster), service);
    }
    await applyTo(west, gatewayService);
    await west.call('PATCH', '/api/v1/namespaces/istio-system/services/eastwestgateway/status', {
      status: { loadBalancer: { ingress: [{ ip: networks.two.address }] } },
    });
    await applyTo(own, ...configuration(networks.one.place.admin));
    const kubeconfig = [own.kubeconfig];
    const program = await Program.start({ kubeconfig, ...settings, secureGrpcAddress: '0.0.0.0:0' }, { onEnd });
    await program.logged('Ready');
    await program.logged('Signing certificates');
    return new TwoNetworks({ apis, program, networks, link }, ca, onEnd);
  }

  /** Applies configuration, which is that of the own cluster. */
  apply(...objects: readonly KubernetesObject[]): Promise<void> {
    return applyTo(this.apis.own, ...objects);
  }

  /** One request after the other to the service `a`, from network one. */
  ask(signal: AbortSignal): SteadyClient {
    return startSteadyClient(PORTS.service, 'a.shop', signal, this.networks.one.place.admin);
  }

  /** The sidecar of a client on network one. */
  client(): Promise<RunningEnvoy> {
    const labels = { pod: 'client' };
    return this.#proxy('own', { type: 'sidecar', name: 'client', account: 'client', address: podAddress(9), labels });
  }

  /** The gateway of network two. */
  gateway(): Promise<RunningEnvoy> {
    const labels = { istio: 'eastwestgateway' };
    const { address } = this.networks.two;
    const of = { namespace: 'istio-system', account: 'gateway' };
    return this.#proxy('west', { type: 'router', name: 'gateway', ...of, address, labels });
  }

  /** A Pod that answers with its name, behind a sidecar that speaks mutual TLS only. */
  async server(cluster: ClusterName, name: string, number: number): Promise<RunningEnvoy> {
    const api = this.apis[cluster];
    const address = podAddress(number);
    const labels = { app: 'a', pod: name, 'security.istio.io/tlsMode': 'istio' };
    const { metadata, ...pod } = object('v1', 'Pod', name, {
      spec: { nodeName: 'node', serviceAccountName: 'server', containers: [{ name: 'app', image: 'app' }] },
    });
    await applyTo(api, { ...pod, metadata: { ...metadata, labels } });
    await api.call('PATCH', `/api/v1/namespaces/shop/pods/${name}/status`, {
      status: {
        phase: 'Running',
        podIP: address,
        podIPs: [{ ip: address }],
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    });
    const app = PORTS.pod + number;
    const port = { number: PORTS.pod, name: 'http', protocol: 'HTTP' };
    await this.apply(
      sidecar(name, {
        workloadSelector: { labels: { pod: name } },
        ingress: [{ port, bind: address, captureMode: 'NONE', defaultEndpoint: `127.0.0.1:${app}` }],
        egress: [{ hosts: ['~/*'] }],
      }),
    );
    const answers = application(name, app);
    return this.#proxy(cluster, { type: 'sidecar', name, account: 'server', address, labels, answers });
  }

  /** These are the ready endpoints of `a` in a cluster, by the names of their Pods. */
  async endpoints(cluster: ClusterName, pods: Readonly<Record<string, number>>): Promise<void> {
    const slice = object('discovery.k8s.io/v1', 'EndpointSlice', 'a-1', {
      addressType: 'IPv4',
      ports: [{ name: 'http', port: PORTS.pod, protocol: 'TCP' }],
      endpoints: Object.entries(pods).map(([name, number]) => ({
        addresses: [podAddress(number)],
        conditions: { ready: true },
        nodeName: 'node',
        targetRef: { kind: 'Pod', name, namespace: 'shop' },
      })),
    });
    const metadata = { ...slice.metadata, labels: { 'kubernetes.io/service-name': 'a' } };
    await applyTo(this.apis[cluster], { ...slice, metadata });
  }

  /** An account of that name in the other cluster, and the Secret that says so. */
  async nameWest(account: string): Promise<void> {
    const { west } = this.apis;
    await west.kubectl('create', 'serviceaccount', account, '-n', 'istio-system');
    await applyTo(west, readEverything);
    const who = `--serviceaccount=istio-system:${account}`;
    await west.kubectl('create', 'clusterrolebinding', account, '--clusterrole=read-everything', who);
    const token = (await west.kubectl('create', 'token', account, '-n', 'istio-system')).trim();
    this.reach(true);
    const file = await west.kubeconfigWithToken(token, `https://127.0.0.1:${this.link.port}`);
    const secret = object(
      'v1',
      'Secret',
      'west',
      { stringData: { west: await readFile(file, 'utf8') } },
      'istio-system',
    );
    await this.apply({ ...secret, metadata: { ...secret.metadata, labels: { 'istio/multiCluster': 'true' } } });
  }

  /** Whether the control plane can reach the API server of the other cluster. */
  reach(can: boolean): void {
    if (can) this.link.use(Number(new URL(this.apis.west.url).port));
    else this.link.cut();
  }

  async #proxy(cluster: ClusterName, proxy: ProxyOfPod): Promise<RunningEnvoy> {
    const { type, name, namespace: of = 'shop', account, address, labels = {}, answers } = proxy;
    const { place } = this.networks[NETWORKS[cluster]];
    const socket = join(await temporaryDirectory(this.#onEnd), 'sds');
    const tls = await this.#ca.certify(of, account);
    const agent = await startAgent(tls, socket);
    this.#onEnd(() => agent.close());
    const envoy = await startEnvoy({
      adsPort: this.program.serving.ports.secure!,
      delta: true,
      tls,
      place,
      node: {
        id: `${type}~${address}~${name}.${of}~${of}.svc.cluster.local`,
        metadata: {
          NAMESPACE: of,
          SERVICE_ACCOUNT: account,
          LABELS: labels,
          INTERCEPTION_MODE: 'NONE',
          ISTIO_VERSION: '1.30.0',
          CLUSTER_ID: IDS[cluster],
          NETWORK: NETWORKS[cluster],
        },
        locality: { region: NETWORKS[cluster] },
      },
      extraBootstrap: { staticResources: { clusters: [agent.cluster], ...(answers && { listeners: [answers] }) } },
    });
    this.#onEnd(() => envoy.stop());
    await envoy.ready();
    return envoy;
  }
}

interface ProxyOfPod {
  readonly type: 'sidecar' | 'router';
  readonly name: string;
  readonly namespace?: string;
  readonly account: string;
  readonly address: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** What is behind it. */
  readonly answers?: object;
}

/** Policies for the service `a`. A gateway chooses an endpoint for a connection, so there are to be many. */
const policyOfA = (policy: object): KubernetesObject =>
  destinationRule('a', {
    host: 'a.shop.svc.cluster.local',
    trafficPolicy: { connectionPool: { http: { maxRequestsPerConnection: 5 } }, ...policy },
  });

/** Wherever they are, all endpoints are equal. */
export const preferNothing = policyOfA({});

/** Requests leave their region only if nothing there takes them. */
export const preferNear = policyOfA({
  loadBalancer: { localityLbSetting: { enabled: true } },
  outlierDetection: { consecutive5xxErrors: 1, interval: '1s', baseEjectionTime: '1s', maxEjectionPercent: 100 },
});

async function applyTo(api: BorrowedApiServer, ...objects: readonly object[]): Promise<void> {
  await api.apply(objects.map((each) => JSON.stringify(each)).join('\n---\n'));
}

const namespace = (name: string, labels: Readonly<Record<string, string>> = {}): object => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});

const readEverything = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'read-everything' },
  rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['list', 'watch'] }],
};

const node = (cluster: ClusterName): object => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node', labels: { 'topology.kubernetes.io/region': NETWORKS[cluster] } },
});

const service = object('v1', 'Service', 'a', {
  spec: { ports: [{ name: 'http', port: PORTS.service, targetPort: PORTS.pod }] },
});

const gatewayService: KubernetesObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    namespace: 'istio-system',
    name: 'eastwestgateway',
    labels: { 'topology.istio.io/network': 'two' },
  },
  spec: { type: 'LoadBalancer', ports: [{ name: 'tls', port: PORTS.gateway }] },
} as KubernetesObject;

/** Who speaks mutual TLS, where the client's proxy listens, and what the gateway forwards. */
function configuration(client: string): readonly KubernetesObject[] {
  const http = { number: PORTS.service, name: 'http', protocol: 'HTTP' };
  const tls = { number: PORTS.gateway, name: 'tls', protocol: 'TLS' };
  return [
    preferNothing,
    object('security.istio.io/v1', 'PeerAuthentication', 'default', { spec: { mtls: { mode: 'STRICT' } } }),
    sidecar('client', {
      workloadSelector: { labels: { pod: 'client' } },
      egress: [{ port: http, bind: client, captureMode: 'NONE', hosts: ['./*'] }],
    }),
    gateway(
      'east-west',
      {
        selector: { istio: 'eastwestgateway' },
        servers: [{ port: tls, hosts: ['*.local'], tls: { mode: 'AUTO_PASSTHROUGH' } }],
      },
      'istio-system',
    ),
  ];
}
