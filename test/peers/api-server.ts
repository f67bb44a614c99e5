import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { createAuthority, createSigningKey } from './keys.ts';
import type { KeyPair } from './keys.ts';
import { pathOf } from './peer.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll, startProcess } from './process.ts';
import { toolsWith } from './tools.ts';
import type { RunningProcess } from './process.ts';

export interface ApiServerOptions {
  /**
   * Runs kube-controller-manager: ServiceAccounts, Deployments, EndpointSlices, garbage collection. Without it, no pod
   * can be created (there is no ServiceAccount `default`).
   */
  readonly controllers: boolean;
  /** Additional arguments for kube-apiserver. */
  readonly args?: readonly string[];
  readonly signal?: AbortSignal;
}

/** etcd and kube-apiserver with RBAC, on 127.0.0.1. */
export interface RunningApiServer {
  /** `https://127.0.0.1:PORT` */
  readonly url: string;
  /** Certificate of its CA, PEM. */
  readonly ca: string;
  /** For other processes. */
  readonly access: ApiServerAccess;
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /**
   * Path of a kubeconfig for a bearer token, e.g. one made by `kubectl create token`.
   * @param through URL of something between the client and this server.
   */
  kubeconfigWithToken(token: string, through?: string): Promise<string>;
  /** Returns kubectl's output; if it fails, throws with its stderr. */
  kubectl(...args: string[]): Promise<string>;
  /** `kubectl apply -f -`, server-side, of YAML or JSON. */
  apply(yaml: string): Promise<string>;
  helm(...args: string[]): Promise<string>;
  /** A request as administrator; returns the parsed response body. Throws `ApiError` for a status that is not 2xx. */
  call(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<ApiObject>;
  /** The lines of an endless response (a watch), until the signal fires. */
  lines(path: string, signal: AbortSignal): AsyncGenerator<string>;
  /** Kills the API server and restarts it with the same port and store. */
  restart(): Promise<void>;
  log(): string;
  stop(): Promise<void>;
}

export interface ApiObject {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly [member: string]: unknown;
}

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export const SERVICE_RANGE = '10.96.0.0/16';
export const FIRST_SERVICE = '10.96.0.1';

/** Enough for pods, their owners, addresses and accounts; with all controllers, the start takes 5 s longer. */
export const CONTROLLERS = [
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'root-ca-certificate-publisher-controller',
  'namespace-controller',
  'deployment-controller',
  'replicaset-controller',
  'endpointslice-controller',
  'garbage-collector-controller',
];

/** Ready when it returns, after about 4 s. Always call `stop`. */
export async function startApiServer({ controllers, args = [], signal }: ApiServerOptions): Promise<RunningApiServer> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-api-'));
  const running: Running = { processes: new Map(), agents: [] };
  const stop = async (): Promise<void> => {
    await Promise.all([...running.processes.values()].map((process) => process.stop()));
    await Promise.all(running.agents.map((agent) => agent.destroy()));
    await rm(directory, { recursive: true, force: true });
  };
  try {
    return await start(directory, controllers, args, running, stop, signal);
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Running {
  readonly processes: Map<string, RunningProcess>;
  readonly agents: Agent[];
}

async function start(
  directory: string,
  controllers: boolean,
  args: readonly string[],
  { processes, agents }: Running,
  stop: () => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<RunningApiServer> {
  const [etcdPort = 0, etcdPeerPort = 0, port = 0, managerPort = 0] = await freePorts(4);
  const url = `https://127.0.0.1:${port}`;
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const write = (name: string, content: string): Promise<string> => writeIn(directory, name, content);
  const launch = (name: string, path: string, args: string[]): RunningProcess => {
    const process = startProcess(path, args, { cwd: directory, signal });
    processes.set(name, process);
    return process;
  };

  const etcd = launch('etcd', pathOf('etcd'), etcdArgs(join(directory, 'etcd'), etcdUrl, etcdPeerPort));

  const authority = await createAuthority();
  const ca = authority.certificate;
  const caFile = await write('ca.crt', ca);
  const server = await authority.server([
    ...['127.0.0.1', FIRST_SERVICE],
    ...['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
  ]);
  const signing = await createSigningKey();
  const signingKey = await write('sa.key', signing.privateKey);
  const admin = await authority.client('admin', 'system:masters');
  const kubeconfig = await write('admin.conf', kubeconfigOf(url, ca, userOf(admin)));
  const access: ApiServerAccess = { url, etcdUrl, ca, admin, kubeconfig, directory };
  const apiServerArgs = [
    `--etcd-servers=${etcdUrl}`,
    ...['--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', `--secure-port=${port}`],
    `--tls-cert-file=${await write('server.crt', server.certificate)}`,
    `--tls-private-key-file=${await write('server.key', server.key)}`,
    `--client-ca-file=${caFile}`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${await write('sa.pub', signing.publicKey)}`,
    `--service-account-signing-key-file=${signingKey}`,
    ...['--authorization-mode=Node,RBAC', `--service-cluster-ip-range=${SERVICE_RANGE}`, '--allow-privileged=true'],
    // The Service `kubernetes` does not accept a loopback address as an endpoint.
    '--endpoint-reconciler-type=none',
    ...args,
  ];

  const agent = agentOf(access);
  agents.push(agent);
  const isHealthy = async (healthUrl: string): Promise<true | undefined> => {
    const answer = await request(healthUrl, { dispatcher: agent }).catch(() => undefined);
    await answer?.body.dump();
    return answer?.statusCode === 200 ? true : undefined;
  };
  const startServer = async (attempts = 3): Promise<void> => {
    const process = launch('kube-apiserver', pathOf('kube-apiserver'), apiServerArgs);
    const ready = poll('kube-apiserver', () => isHealthy(`${url}/readyz`), { process, signal, timeoutMs: 60_000 });
    await ready.catch((error: unknown) => {
      if (attempts === 1 || !process.log().includes(OPENAPI_PANIC)) throw error;
      return startServer(attempts - 1);
    });
  };

  await poll('etcd', () => isHealthy(`${etcdUrl}/health`), { process: etcd, signal });
  await startServer();

  const client = clientOf(access, agent);
  if (controllers) {
    const user = userOf(await authority.client('system:kube-controller-manager'));
    const manager = launch('kube-controller-manager', pathOf('kube-controller-manager'), [
      `--kubeconfig=${await write('controllers.conf', kubeconfigOf(url, ca, user))}`,
      ...['--bind-address=127.0.0.1', `--secure-port=${managerPort}`, '--leader-elect=false'],
      ...[`--service-account-private-key-file=${signingKey}`, `--root-ca-file=${caFile}`],
      ...['--use-service-account-credentials=true', `--flex-volume-plugin-dir=${join(directory, 'volumes')}`],
      `--controllers=${CONTROLLERS.join(',')}`,
    ]);
    await poll(
      'kube-controller-manager',
      () => client.call('GET', '/api/v1/namespaces/default/serviceaccounts/default').catch(() => undefined),
      { process: manager, signal },
    );
  }

  return {
    ...client,
    access,
    async restart() {
      await processes.get('kube-apiserver')?.stop();
      await startServer();
    },
    log: () => [...processes].map(([name, process]) => `--- ${name}\n${process.log()}`).join('\n'),
    stop,
  };
}

/** What a process needs to use an API server that another one runs. */
export interface ApiServerAccess {
  readonly url: string;
  /** Plaintext, without credentials. */
  readonly etcdUrl: string;
  readonly ca: string;
  readonly admin: KeyPair;
  readonly kubeconfig: string;
  /** For files of its clients. */
  readonly directory: string;
}

export function agentOf({ ca, admin }: ApiServerAccess): Agent {
  return new Agent({ connect: { ca, cert: admin.certificate, key: admin.key } });
}

/** What tests do with an API server, whoever runs it. */
export type ApiServerClient = Omit<RunningApiServer, 'access' | 'restart' | 'log' | 'stop'>;

export function clientOf({ url, ca, kubeconfig, directory }: ApiServerAccess, agent: Agent): ApiServerClient {
  const call: RunningApiServer['call'] = async (method, path, body) => {
    const answer = await request(url + path, {
      method,
      dispatcher: agent,
      headers: { 'content-type': method === 'PATCH' ? 'application/strategic-merge-patch+json' : 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new ApiError(answer.statusCode, `${method} ${path}: ${text}`);
    return JSON.parse(text) as ApiObject;
  };

  const tool = toolsWith(kubeconfig, join(directory, 'home'));
  let tokens = 0;
  return {
    url,
    ca,
    kubeconfig,
    kubeconfigWithToken: (token, through = url) =>
      writeIn(directory, `token-${++tokens}.conf`, kubeconfigOf(through, ca, { token })),
    kubectl: (...args) => tool(pathOf('kubectl'), args),
    apply: (yaml) => tool(pathOf('kubectl'), ['apply', '--server-side', '-f', '-'], yaml),
    helm: (...args) => tool(pathOf('helm'), args),
    call,
    async *lines(path, until) {
      const answer = await request(url + path, { dispatcher: agent, signal: until, bodyTimeout: 0 });
      if (answer.statusCode !== 200) throw new ApiError(answer.statusCode, await answer.body.text());
      yield* linesOf(answer.body);
    },
  };
}

/**
 * kube-apiserver 1.34.4 occasionally dereferences a nil pointer in its OpenAPI cache when it starts with CRDs in etcd.
 * A kubelet would restart it.
 */
const OPENAPI_PANIC = 'cached.(*listMerger[...]).prepareResultsLocked';

async function writeIn(directory: string, name: string, content: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, content, { mode: 0o600 });
  return path;
}

export function etcdArgs(dataDirectory: string, url: string, peerPort: number): string[] {
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  return [
    ...[`--data-dir=${dataDirectory}`, `--listen-client-urls=${url}`, `--advertise-client-urls=${url}`],
    ...[`--listen-peer-urls=${peerUrl}`, `--initial-advertise-peer-urls=${peerUrl}`],
    ...[`--initial-cluster=default=${peerUrl}`, '--unsafe-no-fsync', '--log-level=warn'],
  ];
}

export function userOf({ certificate, key }: KeyPair): object {
  return { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
}

/** JSON is YAML. */
export function kubeconfigOf(server: string, ca: string, user: object): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: 'test', user }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
