import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { pathOf } from '../peers/peer.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { type RunningProcess, plainEnvironment, poll, startProcess } from '../peers/process.ts';

export interface AgentSetup {
  /** Of the control plane: 15012. */
  readonly port: number;
  /** The name that the control plane must have. */
  readonly server: string;
  readonly roots: string;
  readonly token: string;
  readonly namespace: string;
  readonly account: string;
  readonly type?: 'sidecar' | 'router';
  readonly env?: Readonly<Record<string, string>>;
  readonly proxyConfig?: object;
  /** More files of the Pod. */
  readonly files?: Readonly<Record<string, string>>;
  /** Of an agent that has ended: what it left. */
  readonly root?: string;
  /** When it ends: with the test, if nothing else is said. */
  readonly onEnd?: OnEnd;
}

/** An agent of ours in its own process, with the files of a Pod in a directory of its own. */
export interface AgentProcess {
  readonly process: RunningProcess;
  readonly ports: { readonly admin: number; readonly status: number; readonly ready: number; readonly stats: number };
  /** Writes a file of the Pod. */
  write(path: string, text: string): void;
  /** Of the Pod's directory. */
  readonly root: string;
  get(port: number, path: string): Promise<{ readonly status: number; readonly body: string }>;
  /** Settles once the readiness probe succeeds. */
  ready(): Promise<void>;
}

/** The command line of Fairlead: the sources, or a bundle. */
export const SOURCES: readonly string[] = [join(import.meta.dirname, '../../src/main.ts')];

export async function startFairleadAgent(setup: AgentSetup, program = SOURCES): Promise<AgentProcess> {
  const { onEnd = onTestFinished } = setup;
  const root = setup.root ?? mkdtempSync(join(tmpdir(), 'fl-agent-'));
  onEnd(() => rmSync(root, { recursive: true, force: true }));
  const write = (path: string, text: string): void => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  write('var/run/secrets/istio/root-cert.pem', setup.roots);
  write('var/run/secrets/tokens/istio-token', setup.token);
  write('etc/istio/pod/labels', `app="${setup.account}"\npod-template-hash="abc"\n`);
  write('etc/istio/pod/annotations', 'note="a \\"quoted\\" text"\n');
  for (const [path, text] of Object.entries(setup.files ?? {})) write(path, text);
  const [admin = 0, status = 0, ready = 0, stats = 0] = await freePorts(4);
  const proxyConfig = {
    discoveryAddress: `127.0.0.1:${setup.port}`,
    proxyAdminPort: admin,
    statusPort: status,
    binaryPath: pathOf('envoy'),
    concurrency: 1,
    terminationDrainDuration: '1s',
    ...setup.proxyConfig,
  };
  const child = startProcess(
    process.execPath,
    [...program, 'agent', setup.type ?? 'sidecar', '--root', root, '--domain', `${setup.namespace}.svc.cluster.local`],
    {
      env: {
        ...plainEnvironment(),
        POD_NAME: `${setup.account}-1`,
        POD_NAMESPACE: setup.namespace,
        SERVICE_ACCOUNT: setup.account,
        INSTANCE_IP: '127.0.0.1',
        ISTIOD_SAN: setup.server,
        ENVOY_STATUS_PORT: `${ready}`,
        ENVOY_PROMETHEUS_PORT: `${stats}`,
        ISTIO_META_INTERCEPTION_MODE: 'NONE',
        PROXY_CONFIG: JSON.stringify(proxyConfig),
        ...setup.env,
      },
    },
  );
  onEnd(() => child.stop());
  const get = async (port: number, path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: response.status, body: await response.text() };
  };
  return {
    process: child,
    ports: { admin, status, ready, stats },
    root,
    write,
    get,
    async ready() {
      await poll(
        'the agent is ready',
        () =>
          get(ready, '/healthz/ready').then(
            (answer) => (answer.status === 200 ? true : undefined),
            () => undefined,
          ),
        { process: child },
      );
    },
  };
}
