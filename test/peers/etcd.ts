import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import type { EtcdAccess } from '../../src/etcd/access.ts';
import { connectEtcd, type EtcdConnection } from '../../src/etcd/connection.ts';
import { status } from '../../src/etcd/testing/messages.ts';
import { type Authority, createAuthority, type KeyPair } from './keys.ts';
import { pathOf } from './peer.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll, type RunningProcess, startProcess } from './process.ts';

/** An etcd of one member on 127.0.0.1 that wants client certificates: their CN is the user. */
export interface RunningEtcd {
  readonly port: number;
  readonly authority: Authority;
  /** Files for this user, made anew. */
  access(user: string): Promise<EtcdAccess>;
  /** Writes other keys and certificates into the files of an access. */
  renew(access: EtcdAccess, user: string, authority?: Authority): Promise<void>;
  /** As the user, with files of its own. Closed with the etcd. */
  connect(user: string): Promise<EtcdConnection>;
  /** Kills it, and starts it again with the same port. */
  restart(how?: Restart): Promise<void>;
  kill(): Promise<void>;
  /** Ready when it returns. */
  start(how?: Restart): Promise<void>;
  log(): string;
  stop(): Promise<void>;
}

export interface Restart {
  /** With an empty store. */
  readonly wiped?: boolean;
  /** From which, with an empty store, its cluster_id comes. */
  readonly token?: string;
  /** From which its server certificate comes, and which client certificates are from. */
  readonly authority?: Authority;
  /** Is called before it serves anyone else, as root; also after the first start. */
  readonly prepare?: (root: EtcdConnection) => Promise<void>;
  readonly args?: readonly string[];
}

/** Names in its certificate. */
const NAMES = ['127.0.0.1', 'localhost', '*.mesh.cilium.io'];

/** Ready when it returns. Always call `stop`. */
export async function startEtcd(first: Restart = {}): Promise<RunningEtcd> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-etcd-'));
  const [port = 0, peerPort = 0] = await freePorts(2);
  const connections: EtcdConnection[] = [];
  let authority = first.authority ?? (await createAuthority());
  let token = first.token ?? 'token';
  let process: RunningProcess | undefined;
  let files = 0;

  const write = async (path: string, content: string): Promise<string> => {
    // Whoever reads it never sees a part.
    await writeFile(`${path}.new`, content, { mode: 0o600 });
    await rename(`${path}.new`, path);
    return path;
  };
  const fileNames = (): EtcdAccess => {
    const at = join(directory, `client-${++files}`);
    return {
      endpoints: [`https://127.0.0.1:${port}`],
      caFile: `${at}-ca.crt`,
      certificate: { certFile: `${at}.crt`, keyFile: `${at}.key` },
    };
  };
  const renew = async ({ caFile, certificate }: EtcdAccess, user: string, by = authority): Promise<void> => {
    const pair: KeyPair = await by.client(user);
    if (caFile !== undefined) await write(caFile, by.certificate);
    if (certificate === undefined) return;
    await write(certificate.certFile, pair.certificate);
    await write(certificate.keyFile, pair.key);
  };
  const access = async (user: string): Promise<EtcdAccess> => {
    const files = fileNames();
    await renew(files, user);
    return files;
  };
  const connect = async (user: string): Promise<EtcdConnection> => {
    const { signal } = new AbortController();
    const options = { access: await access(user), clock: systemClock, random: () => 0.5 };
    const connection = await connectEtcd(options, { signal });
    connections.push(connection);
    return connection;
  };
  const start = async ({ wiped = false, prepare, args = [], ...how }: Restart = {}): Promise<void> => {
    if (wiped) await rm(join(directory, 'data'), { recursive: true, force: true });
    token = how.token ?? token;
    authority = how.authority ?? authority;
    const server = await authority.server(NAMES);
    const [url, peerUrl] = [`https://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
    const started = startProcess(
      pathOf('etcd'),
      [
        ...[`--data-dir=${join(directory, 'data')}`, '--name=default', `--initial-cluster-token=${token}`],
        ...[`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`],
        ...[`--listen-peer-urls=${peerUrl}`, `--initial-advertise-peer-urls=${peerUrl}`],
        ...[`--initial-cluster=default=${peerUrl}`, '--unsafe-no-fsync', '--log-level=warn'],
        ...['--client-cert-auth', `--trusted-ca-file=${await write(join(directory, 'ca.crt'), authority.certificate)}`],
        `--cert-file=${await write(join(directory, 'server.crt'), server.certificate)}`,
        `--key-file=${await write(join(directory, 'server.key'), server.key)}`,
        '--enable-grpc-gateway=false',
        ...args,
      ],
      { cwd: directory },
    );
    process = started;
    const root = await poll('etcd', () => connected(() => connect('root')), { process: started });
    await prepare?.(root);
  };
  const running: RunningEtcd = {
    port,
    get authority() {
      return authority;
    },
    access,
    renew,
    connect,
    async restart(how) {
      await process?.stop();
      await start(how);
    },
    async kill() {
      await process?.stop();
    },
    start,
    log: () => process?.log() ?? '',
    async stop() {
      for (const connection of connections) connection.close();
      await process?.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
  try {
    await start(first);
  } catch (error) {
    await running.stop();
    throw error;
  }
  return running;
}

/** Undefined unless it answers, and has a leader. */
async function connected(connect: () => Promise<EtcdConnection>): Promise<EtcdConnection | undefined> {
  try {
    const connection = await connect();
    const { leader } = await connection.call(status, {}, { signal: new AbortController().signal });
    return leader === 0n ? undefined : connection;
  } catch {
    return undefined;
  }
}
