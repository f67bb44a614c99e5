import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { startOtherBuild } from './other-build.ts';

/** One of several Envoys that are told the same. */
export interface Member extends RunningEnvoy {
  readonly name: string;
  readonly build: 'envoy' | 'other';
}

export interface FleetOptions {
  readonly adsPort: number;
  /** Where relative paths begin for a member; absent: here. */
  readonly cwd?: (name: string) => string;
}

/** Three Envoys of one build and two of another, of both variants of the protocol. */
const MEMBERS = [
  { name: 'a1', build: 'envoy', delta: true },
  { name: 'a2', build: 'envoy', delta: false },
  { name: 'a3', build: 'envoy', delta: true },
  { name: 'b1', build: 'other', delta: false },
  { name: 'b2', build: 'other', delta: true },
] as const;

/** Of the members. */
export const NAMES: readonly string[] = MEMBERS.map(({ name }) => name);

/** Envoys that cannot be told apart but by their names and builds. All listen on the same ports, which they share. */
export class Fleet {
  readonly members: readonly Member[];
  readonly #close: () => void;

  private constructor(members: readonly Member[], close: () => void) {
    this.members = members;
    this.#close = close;
  }

  static async start({ adsPort, cwd }: FleetOptions): Promise<Fleet> {
    const relay = await startOtherBuild(adsPort);
    const started = await Promise.allSettled(
      MEMBERS.map(async ({ name, build, delta }): Promise<Member> => {
        const envoy = await startEnvoy({
          adsPort: build === 'other' ? relay.port : adsPort,
          delta,
          node: {
            id: `sidecar~10.0.0.9~${name}.shop~shop.svc.cluster.local`,
            metadata: { INTERCEPTION_MODE: 'NONE', NAMESPACE: 'shop' },
          },
          ...(cwd && { cwd: cwd(name) }),
        });
        return { ...envoy, name, build };
      }),
    );
    const members = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const fleet = new Fleet(members, () => relay.close());
    try {
      for (const each of started) if (each.status === 'rejected') throw each.reason;
      await Promise.all(members.map((member) => member.ready()));
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  /** How many responses each has rejected so far, by name. */
  async rejections(): Promise<ReadonlyMap<string, number>> {
    const entries = this.members.map(async ({ name, stats }) => {
      const found = Object.values(await stats('update_rejected$'));
      return [name, found.reduce((sum, each) => sum + each, 0)] as const;
    });
    return new Map(await Promise.all(entries));
  }

  /** Clusters that are not in use yet, by the names of those that have some. */
  async warming(): Promise<Readonly<Record<string, number>>> {
    const found = await Promise.all(
      this.members.map(async ({ name, stats }) => {
        const { 'cluster_manager.warming_clusters': warming = 0 } = await stats('warming_clusters$');
        return [name, warming] as const;
      }),
    );
    return Object.fromEntries(found.filter(([, warming]) => warming > 0));
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
    this.#close();
  }
}
