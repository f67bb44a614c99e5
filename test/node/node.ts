import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Agent, request } from 'undici';
import { CONTROLLERS, FIRST_SERVICE, SERVICE_RANGE, etcdArgs, kubeconfigOf, userOf } from '../peers/api-server.ts';
import { createAuthority, createSigningKey } from '../peers/keys.ts';
import { pathOf } from '../peers/peer.ts';
import { toolsWith } from '../peers/tools.ts';
import { type RunningProcess, poll } from '../peers/process.ts';
import { type Box, startBox } from './box.ts';
import { NODE, containerdConfig, kubeletConfig, networkConfig, proxyConfig } from './configuration.ts';
import { dnsObjects } from './dns.ts';
import { nodeImages } from './images.ts';

/** A Kubernetes of one node: its control plane, kubelet, containerd, kube-proxy and CoreDNS, in a box. */
export interface RunningNode extends Pick<Box, 'directory' | 'run' | 'forward' | 'log' | 'stop'> {
  /** Path of an administrator's kubeconfig, for this machine and for programs inside. */
  readonly kubeconfig: string;
  /** Returns kubectl's output; if it fails, throws with its stderr. */
  kubectl(...args: string[]): Promise<string>;
  /** `kubectl apply -f -`, server-side, of YAML or JSON. */
  apply(yaml: string): Promise<string>;
  helm(...args: string[]): Promise<string>;
  /** Makes an image known to the kubelet. @param archive from `buildImages`; the name of the image is in it. */
  importImage(archive: string): Promise<void>;
}

export interface NodeOptions {
  /** For its files: an empty one, with a short path, which `stop` removes. Absent: a temporary one. */
  readonly directory?: string;
  /** Port of 127.0.0.1 for the API server; absent: any free one. */
  readonly apiPort?: number;
  /** Archives of images to be imported while the API server starts. */
  readonly images?: readonly string[];
  readonly signal?: AbortSignal;
}

/**
 * The node is Ready and names are resolved when it returns, after about 8 s. Always call `stop`. One at a time on a
 * machine: `startOnlyNode` waits for that.
 */
export async function startNode(options: NodeOptions = {}): Promise<RunningNode> {
  const archives = [...(await nodeImages(options.signal)), ...(options.images ?? [])];
  const { directory, signal } = options;
  const box = await startBox({ nameserver: NODE.dns, cgroup: NODE.cgroup, directory, signal });
  try {
    return await start(box, archives, options);
  } catch (error) {
    console.error(`${box.log()}\n${podLogs(join(box.directory, 'pod-logs'))}`);
    await box.stop();
    throw error;
  }
}

async function start(box: Box, archives: readonly string[], options: NodeOptions): Promise<RunningNode> {
  const { signal, apiPort } = options;
  const write = async (name: string, content: string | object): Promise<string> => {
    const path = join(box.directory, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
    return path;
  };

  const containerd = box.launch('containerd', pathOf('containerd'), [
    '--config',
    await write(
      'containerd.toml',
      containerdConfig(box.directory, { cni: dirname(pathOf('ptp')), runc: pathOf('runc') }),
    ),
  ]);
  await write('cni/10-pods.conflist', networkConfig);
  const importing = importImages(box, archives, containerd, signal);
  // Awaited below; until then, its failure is not unhandled.
  importing.catch(() => {});

  const etcdUrl = 'http://127.0.0.1:2379';
  box.launch('etcd', pathOf('etcd'), etcdArgs(join(box.directory, 'etcd'), etcdUrl, 2380));

  const authority = await createAuthority();
  const ca = authority.certificate;
  const caFile = await write('ca.crt', ca);
  const server = await authority.server([
    ...['127.0.0.1', NODE.address, FIRST_SERVICE],
    ...['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
  ]);
  const certificateOf = async (name: string, user: string, ...groups: string[]) => {
    const pair = await authority.client(user, ...groups);
    return {
      pair,
      certificate: await write(`${name}.crt`, pair.certificate),
      key: await write(`${name}.key`, pair.key),
    };
  };
  const signing = await createSigningKey();
  const signingKey = await write('sa.key', signing.privateKey);
  const toKubelet = await certificateOf('to-kubelet', 'kube-apiserver', 'system:masters');
  const apiServer = box.launch('kube-apiserver', pathOf('kube-apiserver'), [
    `--etcd-servers=${etcdUrl}`,
    ...['--bind-address=0.0.0.0', `--advertise-address=${NODE.address}`, `--secure-port=${NODE.apiPort}`],
    `--tls-cert-file=${await write('server.crt', server.certificate)}`,
    `--tls-private-key-file=${await write('server.key', server.key)}`,
    `--client-ca-file=${caFile}`,
    `--service-account-issuer=https://kubernetes.default.svc.${NODE.domain}`,
    `--service-account-key-file=${await write('sa.pub', signing.publicKey)}`,
    `--service-account-signing-key-file=${signingKey}`,
    ...['--authorization-mode=Node,RBAC', '--enable-admission-plugins=NodeRestriction'],
    ...[`--service-cluster-ip-range=${SERVICE_RANGE},${NODE.v6.serviceRange}`, '--allow-privileged=true'],
    ...[`--kubelet-client-certificate=${toKubelet.certificate}`, `--kubelet-client-key=${toKubelet.key}`],
    // By address: nobody resolves the name of the node.
    ...[`--kubelet-certificate-authority=${caFile}`, '--kubelet-preferred-address-types=InternalIP'],
  ]);

  const port = await box.forward(NODE.address, NODE.apiPort, apiPort);
  const url = `https://127.0.0.1:${port}`;
  const admin = await authority.client('admin', 'system:masters');
  const kubeconfig = await write('admin.conf', kubeconfigOf(url, ca, userOf(admin)));
  const agent = new Agent({ connect: { ca, cert: admin.certificate, key: admin.key } });
  try {
    await poll(
      'kube-apiserver',
      async () => {
        const answer = await request(`${url}/readyz`, { dispatcher: agent }).catch(() => undefined);
        await answer?.body.dump();
        return answer?.statusCode === 200 ? true : undefined;
      },
      { process: apiServer, signal, timeoutMs: 60_000 },
    );
  } finally {
    await agent.destroy();
  }

  const inside = `https://${NODE.address}:${NODE.apiPort}`;
  const kubeconfigFor = async (name: string, user: string, ...groups: string[]): Promise<string> =>
    write(`${name}.conf`, kubeconfigOf(inside, ca, userOf(await authority.client(user, ...groups))));
  box.launch('kube-controller-manager', pathOf('kube-controller-manager'), [
    `--kubeconfig=${await kubeconfigFor('controllers', 'system:kube-controller-manager')}`,
    ...['--bind-address=127.0.0.1', '--leader-elect=false', '--use-service-account-credentials=true'],
    ...[`--service-account-private-key-file=${signingKey}`, `--root-ca-file=${caFile}`],
    `--flex-volume-plugin-dir=${join(box.directory, 'volume-plugins')}`,
    `--controllers=${[...CONTROLLERS, ...NODE_CONTROLLERS].join(',')}`,
  ]);
  box.launch('kube-scheduler', pathOf('kube-scheduler'), [
    `--kubeconfig=${await kubeconfigFor('scheduler', 'system:kube-scheduler')}`,
    ...['--leader-elect=false', '--bind-address=127.0.0.1'],
  ]);
  const own = await authority.server([NODE.address, NODE.name]);
  const files = {
    ca: caFile,
    certificate: await write('kubelet.crt', own.certificate),
    key: await write('kubelet.key', own.key),
    resolvConf: await write('resolv.conf', `nameserver ${NODE.dns}\n`),
  };
  const kubelet = box.launch('kubelet', pathOf('kubelet'), [
    `--config=${await write('kubelet.yaml', kubeletConfig(box.directory, files))}`,
    `--kubeconfig=${await kubeconfigFor('kubelet', `system:node:${NODE.name}`, 'system:nodes')}`,
    ...[`--hostname-override=${NODE.name}`, `--node-ip=${NODE.address},${NODE.v6.address}`],
    ...[`--root-dir=${join(box.directory, 'kubelet')}`, `--cert-dir=${join(box.directory, 'kubelet-pki')}`],
  ]);
  box.launch('kube-proxy', pathOf('kube-proxy'), [
    `--config=${await write('kube-proxy.yaml', proxyConfig(await kubeconfigFor('kube-proxy', 'system:kube-proxy')))}`,
  ]);

  const tool = toolsWith(kubeconfig, join(box.directory, 'home'));
  const kubectl = (...args: string[]): Promise<string> => tool(pathOf('kubectl'), args);
  const apply = (yaml: string): Promise<string> => tool(pathOf('kubectl'), ['apply', '--server-side', '-f', '-'], yaml);
  await importing;
  await apply(dnsObjects.map((object) => JSON.stringify(object)).join('\n---\n'));
  await poll('the node', () => kubectl('get', `node/${NODE.name}`).catch(() => undefined), {
    process: kubelet,
    signal,
  });
  await kubectl('wait', '--for=condition=Ready', `node/${NODE.name}`, '--timeout=60s');
  await kubectl('-n', 'kube-system', 'wait', '--for=condition=Available', 'deployment/coredns', '--timeout=60s');

  return {
    directory: box.directory,
    kubeconfig,
    kubectl,
    apply,
    helm: (...args) => tool(pathOf('helm'), args),
    importImage: (archive) => importImages(box, [archive], containerd, signal),
    run: (path, args, input) => box.run(path, args, input),
    forward: (host, to, at) => box.forward(host, to, at),
    log: () => `${box.log()}\n${podLogs(join(box.directory, 'pod-logs'))}`,
    stop: () => box.stop(),
  };
}

/** Beside those of an API server without a node. */
const NODE_CONTROLLERS = [
  'daemonset-controller',
  'statefulset-controller',
  'job-controller',
  'cronjob-controller',
  'disruption-controller',
  'node-lifecycle-controller',
  'horizontal-pod-autoscaler-controller',
];

async function importImages(
  box: Box,
  archives: readonly string[],
  containerd: RunningProcess,
  signal: AbortSignal | undefined,
): Promise<void> {
  const ctr = ['--address', NODE.containerdSocket, '--namespace', 'k8s.io'];
  await poll('containerd', () => box.run(pathOf('ctr'), [...ctr, 'version']).catch(() => undefined), {
    process: containerd,
    signal,
  });
  for (const archive of archives) await box.run(pathOf('ctr'), [...ctr, 'images', 'import', archive]);
}

/** The end of what each container has written. */
function podLogs(directory: string): string {
  if (!existsSync(directory)) return '';
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.log'));
  return files
    .map((file) => `--- ${file}\n${readFileSync(join(directory, file), 'utf8').slice(-LOG_LENGTH)}`)
    .join('\n');
}

const LOG_LENGTH = 4096;
