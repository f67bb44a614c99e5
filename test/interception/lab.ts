import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathOf } from '../peers/peer.ts';
import { poll, run, startProcess, type RunningProcess } from '../peers/process.ts';

const PROGRAM = join(import.meta.dirname, '../../src/main.ts');

/** A Pod and a machine that it is connected to, as two network namespaces with one link. */
export const pod = { ip: '10.99.0.2', ip6: 'fd99::2' } as const;
export const peer = { ip: '10.99.0.1', ip6: 'fd99::1' } as const;

/** Who dials: an application, the proxy, something else in the proxy's group. */
const users = { app: ['1000', '1000'], proxy: ['1337', '1337'], group: ['1000', '1337'] } as const;

export interface Dial {
  readonly who: keyof typeof users | 'peer';
  readonly to: string;
  readonly port: number;
  readonly protocol?: 'udp';
  readonly from?: string;
}

/** Why it cannot run here, apart from programs that are missing; undefined if it can. */
export function whyNoLab(): string | undefined {
  if (process.getuid?.() !== 0) return 'skipped: needs root for network namespaces';
  return runs('ip', '-V') ? undefined : 'skipped: no ip on PATH';
}

function runs(program: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** With nft, iptables and their libraries, which may not be installed. */
function environment(): NodeJS.ProcessEnv {
  const bin = dirname(pathOf('nft'));
  const lib = join(bin, '../lib');
  const path = `${bin}:${process.env['PATH']}`;
  return { ...process.env, PATH: path, LD_LIBRARY_PATH: lib, XTABLES_LIBDIR: join(lib, 'xtables') };
}

export class Lab {
  readonly #names: { readonly pod: string; readonly peer: string };
  readonly #processes: RunningProcess[] = [];

  private constructor() {
    this.#names = { pod: `fairlead-pod-${process.pid}`, peer: `fairlead-peer-${process.pid}` };
  }

  static async start(): Promise<Lab> {
    const lab = new Lab();
    try {
      await lab.#connect();
      await lab.#listen('pod', '8080,9999,15001,15006,15008,15021,15053');
      await lab.#listen('peer', '53,8080,9999');
    } catch (error) {
      await lab.stop();
      throw error;
    }
    return lab;
  }

  async #connect(): Promise<void> {
    const { pod: podName, peer: peerName } = this.#names;
    for (const name of [podName, peerName]) await ip('netns', 'add', name);
    await ip('-n', podName, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', peerName);
    for (const [name, addresses] of [
      [podName, pod],
      [peerName, peer],
    ] as const) {
      await ip('-n', name, 'address', 'add', `${addresses.ip}/24`, 'dev', 'eth0');
      await ip('-n', name, 'address', 'add', `${addresses.ip6}/64`, 'dev', 'eth0', 'nodad');
      for (const device of ['lo', 'eth0']) await ip('-n', name, 'link', 'set', device, 'up');
    }
    await ip('-n', podName, 'address', 'add', '::6/128', 'dev', 'lo', 'nodad');
    // A second name server, whose requests nobody captures.
    await ip('-n', peerName, 'address', 'add', '10.99.0.3/24', 'dev', 'eth0');
    // A link that is up sends; until then, IPv6 has no route.
    await poll('the link', async () => {
      const answer = await this.#dial('peer', pod.ip6, '8080', 'tcp');
      return answer.includes('ECONNREFUSED') || undefined;
    });
  }

  async #listen(where: 'pod' | 'peer', ports: string): Promise<void> {
    const script = join(import.meta.dirname, 'listen.ts');
    // In the Pod they stand for the proxy; low ports need root.
    const uid = where === 'pod' ? '1337' : '0';
    const listener = startProcess('ip', [
      'netns',
      'exec',
      this.#names[where],
      process.execPath,
      script,
      where,
      uid,
      ports,
    ]);
    this.#processes.push(listener);
    await poll(`listeners of the ${where}`, async () => listener.log().includes('listening') || undefined);
  }

  /** Runs `fairlead intercept` in the Pod, as its first container does. */
  async intercept(...args: readonly string[]): Promise<string> {
    return this.#inPod(process.execPath, PROGRAM, 'intercept', ...args);
  }

  /** The same in a Pod that has these name servers. */
  async interceptWithServers(servers: readonly string[]): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), 'fairlead-interception-'));
    try {
      const file = join(directory, 'resolv.conf');
      await writeFile(file, servers.map((server) => `nameserver ${server}\n`).join(''));
      return await this.intercept('--redirect-dns', '--resolv-conf', file);
    } finally {
      await rm(directory, { recursive: true });
    }
  }

  /** The rules in force. */
  rules(): Promise<string> {
    return this.#inPod('nft', 'list', 'ruleset');
  }

  async clear(): Promise<void> {
    await this.#inPod('nft', 'flush', 'ruleset');
  }

  /** Loads rules into the Pod, beside those that are there. */
  async restore(program: string, rules: string): Promise<void> {
    const { code, stderr } = await run('ip', ['netns', 'exec', this.#names.pod, program, '--noflush'], {
      input: rules,
      env: environment(),
    });
    if (code !== 0) throw new Error(stderr);
  }

  async #inPod(...command: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await run('ip', ['netns', 'exec', this.#names.pod, ...command], {
      env: environment(),
    });
    if (code !== 0) throw new Error(stderr);
    return stdout + stderr;
  }

  /** Who answers. */
  dial({ who, to, port, protocol, from }: Dial): Promise<string> {
    return this.#dial(who, to, String(port), protocol ?? 'tcp', from);
  }

  async #dial(who: Dial['who'], to: string, port: string, protocol: string, from = '-'): Promise<string> {
    const namespace = who === 'peer' ? this.#names.peer : this.#names.pod;
    const script = join(import.meta.dirname, 'dial.ts');
    const args = [...(who === 'peer' ? users.app : users[who]), protocol, from, to, port];
    return (await run('ip', ['netns', 'exec', namespace, process.execPath, script, ...args])).stdout;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()));
    for (const name of Object.values(this.#names)) await run('ip', ['netns', 'delete', name]);
  }
}

async function ip(...args: readonly string[]): Promise<void> {
  const { code, stderr } = await run('ip', args);
  if (code !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
}
