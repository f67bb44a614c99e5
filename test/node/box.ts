import { existsSync } from 'node:fs';
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { type AddressInfo, type Server, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathOf } from '../peers/peer.ts';
import { type RunningProcess, poll, run, startProcess } from '../peers/process.ts';
import { createCgroups, removeCgroups } from './cgroups.ts';

/**
 * Namespaces of their own (mount, net, pid, uts, ipc), in which a node runs: the machine's interfaces, firewall, mounts
 * and processes stay as they are.
 */
export interface Box {
  /** For files; removed by `stop`. It has the same path inside. */
  readonly directory: string;
  /** Starts a program inside. */
  launch(name: string, path: string, args: readonly string[]): RunningProcess;
  /** Runs a program inside until it ends; throws with its output if it fails. */
  run(path: string, args: readonly string[], input?: string): Promise<string>;
  /**
   * A port of 127.0.0.1 on this machine, for a port inside.
   * @param host an address, or a name that the cluster's DNS knows, looked up for each connection.
   * @param port on this machine; absent: any free one.
   */
  forward(host: string, to: number, port?: number): Promise<number>;
  log(): string;
  /** Kills everything inside, and removes what it leaves. */
  stop(): Promise<void>;
}

export interface BoxOptions {
  /** An empty one, with a short path; absent: a temporary one. */
  readonly directory?: string | undefined;
  /** Whom to ask for names inside. */
  readonly nameserver: string;
  /** Cgroup of everything that the kubelet starts, in each hierarchy. */
  readonly cgroup: string;
  readonly signal?: AbortSignal | undefined;
}

const LONGEST_END_MS = 5000;

const NAMESPACES = ['--mount', '--net', '--pid', '--uts', '--ipc'];

export async function startBox({ nameserver, cgroup, signal, ...options }: BoxOptions): Promise<Box> {
  // The real path: mounts would follow a link.
  const directory = await realpath(options.directory ?? (await mkdtemp(join(tmpdir(), 'fairlead-node-'))));
  const running = new Map<string, RunningProcess>();
  const servers: Server[] = [];
  const stop = async (): Promise<void> => {
    for (const server of servers) server.close();
    // With the first process, the kernel ends the others; who entered for them notices, unless something is wrong.
    await running.get('first process')?.stop();
    const all = [...running.values()];
    await Promise.race([
      Promise.all(all.map(({ exited }) => exited)),
      delay(LONGEST_END_MS, undefined, { ref: false }),
    ]);
    await Promise.all(all.map((process) => process.stop()));
    await removeCgroups(cgroup);
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await createCgroups(cgroup);
    const packages = dirname(dirname(pathOf('containerd')));
    const unshare = startProcess(
      'unshare',
      [
        ...[...NAMESPACES, '--fork', '--kill-child=KILL', '--mount-proc', '--propagation', 'private'],
        ...[join(import.meta.dirname, 'with-libraries.sh'), packages, join(directory, 'ld.so.cache')],
        ...[join(import.meta.dirname, 'first-process.sh'), directory],
      ],
      { signal },
    );
    running.set('first process', unshare);
    await poll('the first process of the node', () => Promise.resolve(/^up$/m.test(unshare.log()) || undefined), {
      process: unshare,
      signal,
    });
    const first = (await readFile(`/proc/${unshare.pid}/task/${unshare.pid}/children`, 'utf8')).trim();
    const enter = ['--target', first, ...NAMESPACES, '--'];
    const env = {
      PATH: `${join(packages, 'bin')}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
      HOME: directory,
    };
    const launch: Box['launch'] = (name, path, args) => {
      const process = startProcess('nsenter', [...enter, path, ...args], { env, signal });
      running.set(name, process);
      return process;
    };

    const socket = join(directory, 'relay.sock');
    const relay = launch('relay', process.execPath, [join(import.meta.dirname, 'relay.ts'), socket, nameserver]);
    await poll('the relay', () => Promise.resolve(existsSync(socket) || undefined), { process: relay, signal });

    return {
      directory,
      launch,
      async run(path, args, input) {
        const { code, stdout, stderr } = await run('nsenter', [...enter, path, ...args], {
          env,
          ...(input !== undefined && { input }),
        });
        if (code !== 0) throw new Error(`${path} ${args.join(' ')}: exit code ${code}\n${stderr}${stdout}`);
        return stdout;
      },
      async forward(host, to, port = 0) {
        const server = forwarder(socket, host, to);
        servers.push(server);
        await new Promise<void>((resolve, reject) => {
          server.once('error', reject).listen(port, '127.0.0.1', resolve);
        });
        return (server.address() as AddressInfo).port;
      },
      log: () => [...running].map(([name, process]) => `--- ${name}\n${process.log().slice(-LOG_LENGTH)}`).join('\n'),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Of each program, in what a failed test prints. */
const LOG_LENGTH = 4096;

function forwarder(socket: string, host: string, port: number): Server {
  return createServer({ allowHalfOpen: true }, (client) => {
    const inside = connect({ path: socket, allowHalfOpen: true });
    inside.write(`${host} ${port}\n`);
    for (const [one, other] of [
      [client, inside],
      [inside, client],
    ] as const) {
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
      one.pipe(other);
    }
  }).unref();
}
