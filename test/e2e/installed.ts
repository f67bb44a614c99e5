import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SelfSignedEntries } from '../../src/identity/self-signed.ts';
import { bundle } from '../../tools/build.ts';
import { CHART, IMAGES, NAMESPACE } from '../chart/chart.ts';
import { entryPoint } from '../chart/image.ts';
import { startApiServer, type ApiObject, type RunningApiServer } from '../peers/api-server.ts';
import { startFakeKubelet } from '../peers/fake-kubelet.ts';
import { type WorkloadCertificate, caOf } from '../peers/mesh-ca.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll, startProcess, type RunningProcess } from '../peers/process.ts';
import { AuditLog } from './audit-log.ts';

export const ACCOUNT = 'fairlead';

/** The chart in a cluster whose Pods have no containers; the test starts them as processes. */
export interface Installed {
  readonly api: RunningApiServer;
  readonly audit: AuditLog;
  /** Names of the Pods that the Deployment of a release has; absent: of the first. */
  pods(release?: string): Promise<string[]>;
  /** Runs the container of this Pod: its arguments and environment, and the token of its ServiceAccount. */
  start(pod: string, options?: StartOptions): Promise<Replica>;
  /** The `tls` of an Envoy that proves to be of this account; a replica has been ready. */
  certify(namespace: string, account: string): Promise<WorkloadCertificate>;
  stop(): Promise<void>;
}

export interface Replica {
  readonly pod: string;
  readonly adsPort: number;
  readonly securePort: number;
  readonly webhookPort: number;
  readonly process: RunningProcess;
  ready(): Promise<void>;
  /** A metric without labels. */
  metric(name: string): Promise<number | undefined>;
  /** JSON of a debug page. */
  debug(page: string): Promise<unknown>;
}

export interface StartOptions {
  /** URL at which it reaches the API server. */
  readonly through?: string;
  /** It is not one of the replicas: it writes nothing, and they do not know of it. */
  readonly aside?: boolean;
  /** Settings other than those of the chart. */
  readonly environment?: NodeJS.ProcessEnv;
}

export interface InstallOptions {
  /** Of kubectl, before the chart comes. */
  readonly before?: (api: RunningApiServer) => Promise<void>;
  /** Of the chart. */
  readonly values?: readonly string[];
}

/** `stop` it in any case. */
export async function install({ before, values = [] }: InstallOptions = {}): Promise<Installed> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-installed-'));
  const stopping = new AbortController();
  const replicas: Replica[] = [];
  let api: RunningApiServer | undefined;
  const stop = async (): Promise<void> => {
    stopping.abort();
    await Promise.all(replicas.map(({ process }) => process.stop()));
    await api?.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const audit = new AuditLog(join(directory, 'audit.log'), `system:serviceaccount:${NAMESPACE}:${ACCOUNT}`);
    const policy = join(directory, 'audit.yaml');
    await writeFile(policy, audit.policy);
    const program = join(directory, 'app');
    const building = bundle(join(program, 'dist'));
    building.catch(() => undefined);
    const server = (api = await startApiServer({ controllers: true, args: audit.args(policy) }));
    await building;
    let addresses = 0;
    await startFakeKubelet(server, {
      podIP: () => `10.244.${++addresses >> 8}.${addresses & 255}`,
      signal: stopping.signal,
    });
    // Pods that ask for more than the standard allows are refused.
    const enforced = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await server.call('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE, labels: enforced } });
    await before?.(server);
    await server.helm(
      'install',
      'fairlead',
      CHART,
      '-n',
      NAMESPACE,
      '--wait',
      '--timeout',
      '30s',
      ...IMAGES,
      ...values,
    );
    return {
      api: server,
      audit,
      pods: async (release = 'fairlead') => {
        const path = `/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app.kubernetes.io/instance=${release}`;
        const { items } = (await server.call('GET', path)) as unknown as { items: Pod[] };
        return items.map(({ metadata }) => metadata.name).sort();
      },
      start: async (name, options = {}) => {
        const pod = (await server.call('GET', `/api/v1/namespaces/${NAMESPACE}/pods/${name}`)) as unknown as Pod;
        const replica = await startReplica(pod, server, program, options, stopping.signal);
        replicas.push(replica);
        return replica;
      },
      certify: async (namespace, account) => {
        const path = `/api/v1/namespaces/${NAMESPACE}/secrets/istio-ca-secret`;
        const { data } = (await server.call('GET', path)) as { readonly data?: Readonly<Record<string, string>> };
        return caOf(decoded(data ?? {})).certify(namespace, account);
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Pod extends ApiObject {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: {
    readonly serviceAccountName: string;
    readonly volumes?: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[];
    readonly containers: readonly {
      readonly args: readonly string[];
      readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
      readonly env: readonly { name: string; value?: string; valueFrom?: { fieldRef?: { fieldPath: string } } }[];
    }[];
  };
}

async function startReplica(
  pod: Pod,
  api: RunningApiServer,
  program: string,
  { through, aside = false, environment = {} }: StartOptions,
  signal: AbortSignal,
): Promise<Replica> {
  const [container] = pod.spec.containers;
  if (container === undefined) throw new Error(`Pod ${pod.metadata.name} has no container`);
  const [adsPort = 0, healthPort, monitoringPort, securePort = 0, webhookPort = 0] = await freePorts(5);
  const [, ...words] = entryPoint(program);
  // Several replicas are on one machine here.
  const mounts = await mountConfigMaps(pod, api, program);
  const args = container.args.map((arg) =>
    [...mounts]
      .reduce((text, [path, directory]) => text.replace(path, directory), arg)
      .replace(/^(--grpc-address=).*/, `$1127.0.0.1:${adsPort}`)
      .replace(/^(--webhook-address=).*/, `$1127.0.0.1:${webhookPort}`),
  );
  if (aside) args.push('--status-writes=off');
  const variables = container.env.filter(({ name }) => !aside || !name.startsWith('POD_'));
  const process = startProcess(globalThis.process.execPath, [...words, ...args], {
    env: {
      ...environment,
      ...Object.fromEntries(variables.map((variable) => [variable.name, valueOf(variable, pod)])),
      KUBECONFIG: await api.kubeconfigWithToken(await tokenOf(pod.spec.serviceAccountName, api), through),
      FAIRLEAD_SECURE_GRPC_ADDRESS: `127.0.0.1:${securePort}`,
      FAIRLEAD_HEALTH_ADDRESS: `127.0.0.1:${healthPort}`,
      FAIRLEAD_MONITORING_ADDRESS: `127.0.0.1:${monitoringPort}`,
    },
    signal,
  });
  const get = async (port: number | undefined, path: string): Promise<string | undefined> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
    const text = await response?.text();
    return response?.ok === true ? text : undefined;
  };
  return {
    pod: pod.metadata.name,
    adsPort,
    securePort,
    webhookPort,
    process,
    ready: async () => {
      await poll(`${pod.metadata.name} is ready`, () => get(healthPort, '/ready'), { process });
    },
    metric: async (name) => {
      const [, value] = new RegExp(`^${name} (.*)$`, 'm').exec((await get(monitoringPort, '/metrics')) ?? '') ?? [];
      return value === undefined ? undefined : Number(value);
    },
    debug: async (page) => {
      const text = await get(monitoringPort, `/debug/${page}`);
      return text === undefined ? undefined : (JSON.parse(text) as unknown);
    },
  };
}

/** The entries of a Secret. */
function decoded(data: Readonly<Record<string, string>>): SelfSignedEntries {
  const entries = Object.entries(data).map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]);
  return Object.fromEntries(entries) as SelfSignedEntries;
}

/** Directories with the content of ConfigMaps, by the path where the container has them. */
async function mountConfigMaps(
  { metadata, spec }: Pod,
  api: RunningApiServer,
  program: string,
): Promise<ReadonlyMap<string, string>> {
  const mounts = new Map<string, string>();
  for (const { name, configMap } of spec.volumes ?? []) {
    const mountPath = spec.containers[0]?.volumeMounts?.find((mount) => mount.name === name)?.mountPath;
    if (configMap === undefined || mountPath === undefined) continue;
    const path = `/api/v1/namespaces/${NAMESPACE}/configmaps/${configMap.name}`;
    const { data } = (await api.call('GET', path)) as { readonly data?: Readonly<Record<string, string>> };
    const directory = join(program, 'volumes', metadata.name, name);
    await mkdir(directory, { recursive: true });
    for (const [file, text] of Object.entries(data ?? {})) await writeFile(join(directory, file), text);
    mounts.set(mountPath, directory);
  }
  return mounts;
}

function valueOf({ name, value, valueFrom }: Pod['spec']['containers'][0]['env'][0], pod: Pod): string {
  if (valueFrom === undefined) return value ?? '';
  if (valueFrom.fieldRef?.fieldPath === 'metadata.name') return pod.metadata.name;
  if (valueFrom.fieldRef?.fieldPath === 'metadata.namespace') return NAMESPACE;
  if (valueFrom.fieldRef?.fieldPath === 'metadata.uid') return pod.metadata.uid;
  throw new Error(`variable ${name} comes from ${JSON.stringify(valueFrom)}`);
}

async function tokenOf(account: string, api: RunningApiServer): Promise<string> {
  const answer = await api.call('POST', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${account}/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 3600 },
  });
  return (answer['status'] as { token: string }).token;
}
