import { execFileSync } from 'node:child_process';
import type { EnvoyPlace } from '../peers/envoy.ts';
import { run } from '../peers/process.ts';

/** A network in which only one address can be reached from the other one, as from a network with a gateway. */
export interface Network {
  /** How programs are started in it. Tests reach what listens on `place.admin`. */
  readonly place: EnvoyPlace;
  /** At which the other network reaches it. */
  readonly address: string;
}

/** Two networks that have the same addresses for Pods. */
export interface Networks {
  readonly one: Network;
  readonly two: Network;
  stop(): Promise<void>;
}

/** Addresses of Pods, in each network. */
export const podAddress = (number: number): string => `10.9.0.${number}`;
const PODS = 9;

/** Why there are none here; undefined if they can be made. */
export function whyNoNetworks(): string | undefined {
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

/** Two network namespaces with a link to each other, and one each to the tests. */
export async function startNetworks(): Promise<Networks> {
  const id = process.pid % 2 ** 13;
  const spaces = ['one', 'two'].map((name, i) => {
    const block = id * 8 + i * 4;
    const [here, there] = [1, 2].map((last) => `198.18.${block >> 8}.${(block & 255) + last}`) as [string, string];
    return {
      name: `fairlead-${name}-${process.pid}`,
      device: `fl${i}-${process.pid}`,
      here,
      there,
      address: `10.99.0.${i + 1}`,
    };
  });
  const [one, two] = spaces as [(typeof spaces)[0], (typeof spaces)[0]];
  const stop = async (): Promise<void> => {
    for (const { name } of spaces) await run('ip', ['netns', 'delete', name]);
  };
  try {
    for (const { name, device, here, there } of spaces) {
      await ip('netns', 'add', name);
      await ip('link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
      await ip('address', 'add', `${here}/30`, 'dev', device);
      await ip('link', 'set', device, 'up');
      await ip('-n', name, 'address', 'add', `${there}/30`, 'dev', 'eth0');
      for (let number = 1; number <= PODS; number++)
        await ip('-n', name, 'address', 'add', `${podAddress(number)}/32`, 'dev', 'lo');
    }
    await ip('-n', one.name, 'link', 'add', 'eth1', 'type', 'veth', 'peer', 'name', 'eth1', 'netns', two.name);
    for (const { name, address } of spaces) {
      await ip('-n', name, 'address', 'add', `${address}/24`, 'dev', 'eth1');
      for (const device of ['lo', 'eth0', 'eth1']) await ip('-n', name, 'link', 'set', device, 'up');
    }
  } catch (error) {
    await stop();
    throw error;
  }
  const network = ({ name, here, there, address }: (typeof spaces)[0]): Network => ({
    place: { command: ['ip', 'netns', 'exec', name], controlPlane: here, admin: there },
    address,
  });
  return { one: network(one), two: network(two), stop };
}

async function ip(...args: readonly string[]): Promise<void> {
  const { code, stderr } = await run('ip', args);
  if (code !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
}
