import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { pathOf } from '../peers/peer.ts';
import { type LabProxy, startProxy } from './proxy.ts';
import { poll, run, startProcess, type RunningProcess } from '../peers/process.ts';

const PROGRAM = join(import.meta.dirname, '../../src/main.ts');

/** A Pod and a machine that it is connected to, as two network namespaces with one link. */
export const pod = { ip: '10.99.0.2', ip6: 'fd99::2' } as const;
export const peer = { ip: '10.99.0.1', ip6: 'fd99::1' } as const;

/** A second name server, whose requests nobody captures. */
const OTHER_SERVER = '10.99.0.3';

/** Who dials: an application, the proxy, something else in the proxy's group. */
const users = { app: ['1000', '1000'], proxy: ['1337', '1337'], group: ['1000', '1337'] } as const;

/** A request over HTTP, or over DNS for the address of a name. */
export interface Dial {
  readonly who: keyof typeof users | 'peer';
  readonly to: string;
  readonly port: number;
  readonly protocol?: 'udp' | 'tcp';
  readonly name?: string;
  readonly from?: string;
}

/** What answers, and the listeners of the proxy that the request has passed. */
export interface Answer {
  readonly answer: string;
  readonly via: Via;
}

export type Via = 'nothing' | 'outbound' | 'inbound' | 'outbound and inbound';

/** Makes requests for one of them, one after the other; ends with its input. */
interface Dialer {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly answers: Interface;
}

/** Names, and the addresses that the agent and the servers of the Pod have for them. The agent does not know `other`. */
export const names = { shared: 'books.example', other: 'other.example' } as const;
export const addresses = { byAgent: '240.240.0.1', byServer: '192.0.2.1', other: '192.0.2.2' } as const;

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
  readonly #dialers = new Map<Dial['who'], Dialer>();
  #proxy: LabProxy | undefined;

  private constructor() {
    this.#names = { pod: `fairlead-pod-${process.pid}`, peer: `fairlead-peer-${process.pid}` };
  }

  static async start(): Promise<Lab> {
    const lab = new Lab();
    try {
      await lab.#connect();
      await lab.#listen('pod', '8080,9999,15008,15021');
      await lab.#listen('peer', '8080,9999');
      const { shared, other } = names;
      const { byAgent, byServer } = addresses;
      await lab.#serveNames('pod', 15053, '1337', ['127.0.0.1', '::1'], [peer.ip], `${shared}=${byAgent}`);
      const servers = [peer.ip, peer.ip6, OTHER_SERVER];
      await lab.#serveNames('peer', 53, '0', servers, [], `${shared}=${byServer},${other}=${addresses.other}`);
      lab.#proxy = await startProxy(lab.#names.pod, [pod.ip, pod.ip6]);
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
    await ip('-n', peerName, 'address', 'add', `${OTHER_SERVER}/24`, 'dev', 'eth0');
    // A link that is up sends; until then, IPv6 has no route.
    await poll('the link', async () => {
      const answer = await this.#request({ who: 'peer', to: pod.ip6, port: 8080 });
      return answer.includes('ECONNREFUSED') || undefined;
    });
  }

  async #listen(where: 'pod' | 'peer', ports: string): Promise<void> {
    await this.#run(where, 'listen.ts', where, where === 'pod' ? '1000' : '0', ports);
  }

  async #serveNames(
    where: 'pod' | 'peer',
    port: number,
    uid: string,
    on: readonly string[],
    servers: readonly string[],
    table: string,
  ): Promise<void> {
    await this.#run(where, 'name-server.ts', String(port), uid, on.join(','), servers.join(','), table);
  }

  /** Until the lab stops. */
  async #run(where: 'pod' | 'peer', script: string, ...args: readonly string[]): Promise<void> {
    const file = join(import.meta.dirname, script);
    const started = startProcess('ip', ['netns', 'exec', this.#names[where], process.execPath, file, ...args]);
    this.#processes.push(started);
    await poll(`${script} of the ${where}`, async () => started.log().includes('listening') || undefined, {
      process: started,
    });
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

  async dial(request: Dial): Promise<Answer> {
    await this.#proxy?.passed();
    const answer = await this.#request(request);
    const { outbound = 0, inbound = 0 } = (await this.#proxy?.passed()) ?? {};
    const via = [...(outbound > 0 ? ['outbound'] : []), ...(inbound > 0 ? ['inbound'] : [])].join(' and ');
    return { answer, via: via === '' ? 'nothing' : (via as Via) };
  }

  async #request(request: Dial): Promise<string> {
    let dialer = this.#dialers.get(request.who);
    if (dialer === undefined) this.#dialers.set(request.who, (dialer = this.#startDialer(request.who)));
    const answered = new Promise<string>((resolve, reject) => {
      dialer.answers.once('line', resolve).once('close', () => reject(new Error('the dialer has ended')));
    });
    dialer.child.stdin.write(`${JSON.stringify(request)}\n`);
    try {
      return JSON.parse(await answered) as string;
    } finally {
      dialer.answers.removeAllListeners('close');
    }
  }

  #startDialer(who: Dial['who']): Dialer {
    const namespace = who === 'peer' ? this.#names.peer : this.#names.pod;
    const script = join(import.meta.dirname, 'dial.ts');
    const command = [process.execPath, script, ...(who === 'peer' ? users.app : users[who])];
    const child = spawn('ip', ['netns', 'exec', namespace, ...command], { stdio: ['pipe', 'pipe', 'inherit'] });
    return { child, answers: createInterface(child.stdout) };
  }

  async stop(): Promise<void> {
    for (const { child } of this.#dialers.values()) child.stdin.end();
    await Promise.all([this.#proxy?.stop(), ...this.#processes.map((process) => process.stop())]);
    for (const name of Object.values(this.#names)) await run('ip', ['netns', 'delete', name]);
  }
}

async function ip(...args: readonly string[]): Promise<void> {
  const { code, stderr } = await run('ip', args);
  if (code !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
}
