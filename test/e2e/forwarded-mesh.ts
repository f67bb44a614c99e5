import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { parse } from 'yaml';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { deploymentOf, NAMESPACE, renderChart } from '../chart/chart.ts';
import { destinationRule, object, sidecar, slice, target, virtualService } from '../features/objects.ts';
import { Program } from '../features/program.ts';
import { SERVER, securePort } from '../features/secure-cluster.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { startPortForwarding } from '../peers/fake-port-forward.ts';
import { pathOf } from '../peers/peer.ts';
import { run } from '../peers/process.ts';
import { type AgentProcess, startFairleadAgent } from './fairlead-agent.ts';
import { PATIENCE } from '../features/waiters.ts';
import { type Frontend, startFrontend } from './traffic.ts';

/** Of the replicas' Pods. */
export const REPLICAS = ['fairlead-1', 'fairlead-2'] as const;
/** Of the proxies' Pods, in the namespace `shop`: one for each replica. */
export const PROXIES = ['reviews-1', 'reviews-2'] as const;
const IPS = ['10.1.0.1', '10.1.0.2'] as const;
const NODE = 'node';
/** Clusters, endpoints, listeners and routes for Envoy; names and its settings for the agent. */
const TYPES = 6;

type Replica = (typeof REPLICAS)[number];
type Secure = Awaited<ReturnType<typeof securePort>>;

/**
 * What the chart installs, in a real API server that forwards ports: two replicas, and a proxy of each. They run in and
 * beside this process, and their Pods are objects alone.
 */
export class ForwardedMesh {
  readonly api: BorrowedApiServer;
  /** Of the Service of the shop. */
  readonly port: number;
  readonly #onEnd: OnEnd;
  readonly #home: string;
  /** By `namespace/pod:port`. */
  readonly #ports: Map<string, number>;
  readonly #secure: Secure;
  readonly #replicas = new Map<Replica, { readonly program: Program; readonly frontend: Frontend }>();
  readonly #agents: AgentProcess[] = [];

  private constructor(
    api: BorrowedApiServer,
    port: number,
    secure: Secure,
    ports: Map<string, number>,
    home: string,
    onEnd: OnEnd,
  ) {
    this.api = api;
    this.port = port;
    this.#secure = secure;
    this.#ports = ports;
    this.#home = home;
    this.#onEnd = onEnd;
  }

  static async start(onEnd: OnEnd): Promise<ForwardedMesh> {
    const ports = new Map<string, number>();
    const kubelet = await startPortForwarding((pod, port) => ports.get(`${pod}:${port}`));
    onEnd(() => kubelet.stop());
    const api = await borrowApiServer();
    onEnd(() => api.stop());
    const [port = 0] = await freePorts(1);
    const [home, secure] = [await temporaryDirectory(onEnd), await securePort(onEnd)];
    const mesh = new ForwardedMesh(api, port, secure, ports, home, onEnd);
    await mesh.#install(kubelet.port);
    for (const name of REPLICAS) {
      const frontend = await startFrontend();
      onEnd(() => frontend.close());
      await mesh.#startReplica(name, frontend);
    }
    for (const [i, name] of PROXIES.entries()) await mesh.#createProxy(name, IPS[i]!, `v${i + 1}`, REPLICAS[i]!);
    await Promise.all(mesh.#agents.map((agent) => agent.ready()));
    await mesh.#synced();
    return mesh;
  }

  log(): string {
    const lines = [...this.#replicas.values()].flatMap(({ program }) =>
      program.log.map((line) => JSON.stringify(line)),
    );
    return [...lines, ...this.#agents.map(({ process }) => process.log())].join('\n');
  }

  /** Runs it to its end. */
  istioctl(...args: readonly string[]): ReturnType<typeof run> {
    const env = { PATH: process.env['PATH'], HOME: this.#home, KUBECONFIG: this.api.kubeconfig };
    return run(pathOf('istioctl'), args, { env });
  }

  /** The Pods of the replicas have the labels that these values of the chart give them. */
  async label(values: object): Promise<void> {
    const { labels } = deploymentOf(await renderChart(values));
    for (const name of REPLICAS)
      await this.api.call('PATCH', `/api/v1/namespaces/${NAMESPACE}/pods/${name}`, {
        metadata: { labels: { app: null, ...labels } },
      });
  }

  /** A token of this account that lasts, as the controller for such Secrets makes it: there is none here. */
  async createLastingToken(account: string): Promise<void> {
    const token = (await this.api.kubectl('create', 'token', account, '-n', NAMESPACE)).trim();
    await this.api.call('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
      ...{ type: 'kubernetes.io/service-account-token', stringData: { token, 'ca.crt': this.api.ca } },
      metadata: { name: `${account}-token`, annotations: { 'kubernetes.io/service-account.name': account } },
    });
  }

  /** All at once: proxies come back with what they had. */
  async restartReplicas(): Promise<void> {
    await Promise.all(
      [...this.#replicas.values()].map(({ program, frontend }) => {
        frontend.cut();
        return program.stop();
      }),
    );
    for (const [name, { frontend }] of this.#replicas) await this.#startReplica(name, frontend);
    await this.#synced();
  }

  async #startReplica(name: Replica, frontend: Frontend): Promise<void> {
    const options = { identity: `${NAMESPACE}/${name}`, onEnd: this.#onEnd };
    const program = await Program.start({ kubeconfig: this.api.kubeconfig, ...this.#secure.settings }, options);
    this.#replicas.set(name, { program, frontend });
    await program.logged('Ready');
    await program.logged('Signing certificates');
    const { secure, monitoring, health } = program.serving.ports;
    for (const [port, here] of [
      [15012, secure],
      [15014, monitoring],
      [8080, health],
    ] as const)
      this.#ports.set(`${NAMESPACE}/${name}:${port}`, here!);
    frontend.use(secure!);
  }

  /** Each proxy is connected, has asked for all that it asks for, and has acknowledged everything. */
  async #synced(): Promise<void> {
    const synced = () =>
      [...this.#replicas.values()].map(({ program }) =>
        program.serving.engine.ads.streams().map(({ types }) => types.filter((type) => type.synced).length),
      );
    await vi.waitFor(() => expect(synced()).toEqual(REPLICAS.map(() => [TYPES])), { timeout: PATIENCE });
  }

  async #install(kubeletPort: number): Promise<void> {
    const api = this.api;
    await api.call('POST', '/api/v1/nodes', { metadata: { name: NODE } });
    await api.call('PATCH', `/api/v1/nodes/${NODE}/status`, {
      status: {
        addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
        daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
      },
    });
    for (const name of [NAMESPACE, 'shop']) await api.kubectl('create', 'namespace', name);
    await api.kubectl('label', 'namespace', 'shop', 'istio-injection=enabled');
    await api.kubectl('create', 'serviceaccount', 'default', '-n', NAMESPACE);
    await api.kubectl('create', 'serviceaccount', 'reviews', '-n', 'shop');
    await api.kubectl('apply', '--server-side', '-f', join(import.meta.dirname, '../../charts/fairlead/crds'));
    await api.kubectl('wait', '--for=condition=Established', 'crd', '--all');
    const chart = await renderChart();
    const { pod, labels } = deploymentOf(chart);
    await this.#apply(...chart);
    for (const name of REPLICAS)
      await this.#createPod({
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: NAMESPACE, labels } },
        ...{ spec: pod, status: { podIP: '10.9.0.1' } },
      });
    await this.#apply(...(await shop(this.port)));
  }

  async #apply(...objects: readonly object[]): Promise<void> {
    await this.api.apply(objects.map((each) => JSON.stringify(each)).join('\n---\n'));
  }

  /** As it is once its containers are ready. */
  async #createPod(pod: PodObject): Promise<void> {
    const { metadata, spec, status } = pod;
    const path = `/api/v1/namespaces/${metadata.namespace}/pods`;
    await this.api.call('POST', path, { ...pod, spec: { ...spec, nodeName: NODE } });
    const statusesOf = (containers: readonly Container[] = []): readonly object[] =>
      containers.map(({ name }) => ({ name, ready: true, started: true, restartCount: 0, image: 'i', imageID: 'i' }));
    await this.api.call('PATCH', `${path}/${metadata.name}/status`, {
      status: {
        ...status,
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'True' }],
        containerStatuses: statusesOf(spec.containers),
        initContainerStatuses: statusesOf(spec.initContainers),
      },
    });
  }

  async #createProxy(name: string, podIP: string, version: string, replica: Replica): Promise<void> {
    const pod = await this.#inject({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop', labels: { app: 'reviews', version } } },
      spec: {
        ...{ serviceAccountName: 'reviews', automountServiceAccountToken: false },
        containers: [{ name: 'reviews', image: 'reviews', ports: [{ containerPort: 8080 }] }],
      },
    });
    await this.#createPod({ ...pod, status: { podIP, podIPs: [{ ip: podIP }] } });
    const [dns = 0] = await freePorts(1);
    const token = await this.api.kubectl('create', 'token', 'reviews', '-n', 'shop', '--audience', 'istio-ca');
    const agent = await startFairleadAgent({
      ...{ port: this.#replicas.get(replica)!.frontend.port, server: SERVER, token: token.trim() },
      ...{ roots: this.#secure.ca.entries['root-cert.pem']!, namespace: 'shop', account: 'reviews' },
      env: { POD_NAME: name, ISTIO_META_DNS_CAPTURE: 'true', DNS_PROXY_ADDR: `127.0.0.1:${dns}` },
      files: { 'etc/istio/pod/labels': `app="reviews"\nversion="${version}"\n` },
      onEnd: this.#onEnd,
    });
    this.#agents.push(agent);
    this.#ports.set(`shop/${name}:15000`, agent.ports.admin);
  }

  /** As the webhook does. */
  async #inject(pod: PodObject): Promise<PodObject> {
    const file = join(this.#home, 'pod.json');
    await writeFile(file, JSON.stringify(pod));
    let [out, err] = ['', ''];
    const code = await runCli(['inject', '-f', file], {
      program: () => Promise.resolve(createProgram()),
      out: (text) => void (out += text),
      err: (text) => void (err += text),
      env: {},
      signal: new AbortController().signal,
    });
    if (code !== 0) throw new Error(err);
    return parse(out) as PodObject;
  }
}

/** A Service with two versions, on a port that nothing else on this machine has: there, its proxies share the listener. */
async function shop(port: number): Promise<readonly object[]> {
  const [inbound = 0, application = 0] = await freePorts(2);
  const ports = [{ name: 'http', port, protocol: 'TCP', targetPort: 8080 }];
  const subsets = ['v1', 'v2'].map((version) => ({ name: version, labels: { version } }));
  const destination = (subset: string) => ({ host: 'reviews', subset });
  const policy = { rules: [{ to: [{ operation: { methods: ['GET'] } }] }] };
  return [
    object('v1', 'Service', 'reviews', { spec: { ports, selector: { app: 'reviews' } } }),
    slice(
      'reviews',
      PROXIES.map((name, i) => target(name, IPS[i]!)),
    ),
    destinationRule('reviews', { host: 'reviews', subsets }),
    virtualService('reviews', {
      hosts: ['reviews'],
      http: [{ route: ['v1', 'v2'].map((subset) => ({ destination: destination(subset), weight: 50 })) }],
    }),
    sidecar('reviews', {
      workloadSelector: { labels: { app: 'reviews' } },
      ingress: [
        {
          port: { number: inbound, protocol: 'HTTP', name: 'http' },
          ...{ bind: '127.0.0.1', captureMode: 'NONE', defaultEndpoint: `127.0.0.1:${application}` },
        },
      ],
      egress: [{ hosts: ['./*'] }],
    }),
    object('security.istio.io/v1', 'AuthorizationPolicy', 'readers', { spec: policy }),
  ];
}

interface PodObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels: object };
  readonly spec: {
    readonly containers?: readonly Container[];
    readonly initContainers?: readonly Container[];
    readonly [member: string]: unknown;
  };
  readonly status?: object;
}

interface Container {
  readonly name: string;
  readonly [member: string]: unknown;
}
