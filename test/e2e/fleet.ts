import { type EnvoyVersion, type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import type { MeshCa } from '../peers/mesh-ca.ts';
import type { PeerName } from '../peers/peer.ts';

/** One of several Envoys that are told the same. */
export interface Member extends RunningEnvoy {
  readonly name: string;
  readonly version: EnvoyVersion;
}

export interface FleetOptions {
  /** Secure ports of the replicas of a control plane, which the members take by turns. */
  readonly adsPorts: readonly number[];
  /** Who signs for proxies. */
  readonly ca: MeshCa;
  /** Where relative paths begin for a member; absent: here. */
  readonly cwd?: (name: string) => string;
}

/** What a fleet needs. */
export const FLEET: readonly PeerName[] = ['envoy', 'former-envoy'];

/** Three Envoys of one version and two of another, of both variants of the protocol. */
const MEMBERS = [
  { name: 'a1', version: 'envoy', delta: true },
  { name: 'a2', version: 'envoy', delta: false },
  { name: 'a3', version: 'envoy', delta: true },
  { name: 'b1', version: 'former-envoy', delta: false },
  { name: 'b2', version: 'former-envoy', delta: true },
] as const;

/** Of the members. */
export const NAMES: readonly string[] = MEMBERS.map(({ name }) => name);

/** Envoys that cannot be told apart but by their names and versions, of one account. All listen on the same ports, which they share. */
export class Fleet {
  readonly members: readonly Member[];

  private constructor(members: readonly Member[]) {
    this.members = members;
  }

  static async start({ adsPorts, ca, cwd }: FleetOptions): Promise<Fleet> {
    const started = await Promise.allSettled(
      MEMBERS.map(async ({ name, version, delta }, i): Promise<Member> => {
        const envoy = await startEnvoy({
          version,
          adsPort: adsPorts[i % adsPorts.length]!,
          delta,
          tls: await ca.certify('shop', 'shop'),
          node: {
            id: `sidecar~10.0.0.9~${name}.shop~shop.svc.cluster.local`,
            metadata: { INTERCEPTION_MODE: 'NONE', NAMESPACE: 'shop', SERVICE_ACCOUNT: 'shop' },
          },
          ...(cwd && { cwd: cwd(name) }),
        });
        return { ...envoy, name, version };
      }),
    );
    const members = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const fleet = new Fleet(members);
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
  }
}
