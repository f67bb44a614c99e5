import { cp, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningEnvoy, startEnvoy } from '../../test/peers/envoy.ts';
import { poll } from '../../test/peers/process.ts';
import { startBookshop } from './bookshop.ts';
import { type Fairlead, type ProxyState, startFairlead } from './fairlead.ts';
import { type Ports, movePorts, portsFrom, takenPorts } from './ports.ts';
import { RunError } from './run-error.ts';

export const EXAMPLE = 'examples/bookshop';

/** Fairlead, its proxies and the shop behind them. */
export interface Stage {
  readonly fairlead: Fairlead;
  readonly ports: Ports;
  /** By the name that Fairlead uses for them. */
  readonly proxies: Readonly<Record<string, RunningEnvoy>>;
  /** Settles with a sentence about it if one of the programs ends on its own. */
  readonly broken: Promise<string>;
  /** Stops everything. */
  stop(): Promise<void>;
}

/** Starts everything, and returns once all proxies have what they need. */
export async function startStage(directory: string, base: number, signal: AbortSignal): Promise<Stage> {
  const ports = portsFrom(base);
  const [one, ...more] = await takenPorts(ports);
  if (one !== undefined) {
    const which =
      more.length === 0 ? `port ${one} of 127.0.0.1 is` : `ports ${[one, ...more].join(', ')} of 127.0.0.1 are`;
    throw new RunError(`${which} taken: end what listens there, or use others: make run PORTS=29000`);
  }
  const ending: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(ending.splice(0).map((end) => end()));
  };
  try {
    ending.push(await startBookshop(ports));
    const fairlead = await startFairlead(directory, ports, signal);
    ending.push(() => fairlead.stop());
    const proxies: Record<string, RunningEnvoy> = {};
    const started = await Promise.allSettled(
      nodes(ports).map(async (node) => {
        const envoy = await startEnvoy({ adsPort: ports.xds, delta: true, node, signal });
        ending.push(() => envoy.stop());
        proxies[node.id.split('~')[2]!] = envoy;
        await envoy.ready();
      }),
    );
    for (const result of started) if (result.status === 'rejected') throw result.reason;
    await poll('all proxies have acknowledged what they were sent', async () =>
      isSettled(await fairlead.proxies(), Object.keys(proxies)) ? true : undefined,
    );
    const broken = Promise.race([
      fairlead.exited.then((code) => `Fairlead ended (${code}):\n${fairlead.log()}`),
      ...Object.entries(proxies).map(([name, envoy]) =>
        envoy.exited.then((code) => `The Envoy ${name} ended (${code}):\n${envoy.log()}`),
      ),
    ]);
    return { fairlead, ports, proxies, broken, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The nodes of the ingress gateway and of the storefront's sidecar, as their agents would describe them. */
function nodes({ proxy }: Ports) {
  return [
    {
      id: 'router~127.0.0.1~ingressgateway.istio-system~istio-system.svc.cluster.local',
      metadata: { NAMESPACE: 'istio-system', LABELS: { istio: 'ingressgateway' } },
    },
    {
      // Its own address: all workloads of the example share 127.0.0.1.
      id: 'sidecar~127.0.0.2~storefront.bookshop~bookshop.svc.cluster.local',
      metadata: {
        NAMESPACE: 'bookshop',
        LABELS: { app: 'storefront', version: 'v1' },
        INTERCEPTION_MODE: 'NONE',
        HTTP_PROXY_PORT: `${proxy}`,
        // Without this, the sidecar would also listen on port 80 of this machine.
        UNPRIVILEGED_POD: 'true',
      },
    },
  ];
}

/** Whether these proxies are connected and have accepted everything due to them. */
export function isSettled(states: readonly ProxyState[], names: readonly string[]): boolean {
  return names.every((name) => {
    const types = states.find((state) => state.name === name)?.types ?? [];
    return types.length === 4 && types.every(({ synced, acked, rejected }) => synced && acked && rejected.length === 0);
  });
}

/** A copy of the example with other ports, in a temporary directory. */
export async function copyExample(base: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-bookshop-'));
  await cp(EXAMPLE, directory, { recursive: true });
  for (const file of await readdir(directory)) {
    const path = join(directory, file);
    await writeFile(path, movePorts(await readFile(path, 'utf8'), base));
  }
  return directory;
}

export async function removeCopy(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
}
