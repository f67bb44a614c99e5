import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Snapshot } from '../../src/debug/snapshot.ts';
import { bytesOf } from '../../src/ads/wire/bytes-of.ts';
import { kindOf, kinds } from '../../src/api/kinds.ts';
import { NAME_TABLE } from '../../src/model/named-host.ts';
import { remoteKinds } from '../../src/other-clusters/remote-cluster.ts';
import { type EnvoyNode, TestMesh, connectedProxy, readObjects } from '../harness/mesh.ts';
import { readNameTable } from '../harness/names.ts';
import { differences } from './difference.ts';
import { type Tree, normalise, recorded } from './normalise.ts';

/** What is read of another cluster. */
const remote = new Set(remoteKinds(kinds));

const root = join(import.meta.dirname, 'cases');

/** Names as `area/case`. */
export function caseNames(): string[] {
  return readdirSync(root).flatMap((area) => readdirSync(join(root, area)).map((name) => `${area}/${name}`));
}

export interface Verdict {
  /** A line for each difference to what was recorded. */
  readonly primary: readonly string[];
  readonly telemetry: readonly string[];
  readonly proxies: readonly { readonly proxy: string; readonly snapshot: Snapshot }[];
}

export function runCase(name: string): Verdict {
  const directory = join(root, name);
  const multiclusterServices = name.startsWith('multicluster-services/');
  const mesh = new TestMesh({ oracle: false, mesh: { assumesCredentials: true, multiclusterServices } });
  for (const cluster of otherClustersOf(directory)) {
    mesh.commit([mesh.mesh.inputs.remoteClusters.write(cluster, { id: cluster })]);
    const objects = readObjects(readFileSync(join(directory, `${cluster}.yaml`), 'utf8'));
    mesh.apply(
      objects.filter(({ apiVersion, kind }) => remote.has(kindOf(apiVersion, kind)!)),
      cluster,
    );
  }
  mesh.apply(readObjects(readFileSync(join(directory, 'input.yaml'), 'utf8')));
  const results = readdirSync(join(directory, 'proxies'))
    .sort()
    .map((file) => {
      const proxy = file.replace(/\.json$/, '');
      const read = (folder: string) => JSON.parse(readFileSync(join(directory, folder, file), 'utf8')) as unknown;
      mesh.connect(connectedProxy(proxy, read('proxies') as EnvoyNode));
      const answer = read('expected') as { [key: string]: Tree };
      const want = recorded(answer);
      const got =
        'nds' in answer
          ? { primary: { nds: namesOf(mesh, proxy) }, telemetry: {} }
          : normalise(mesh.json(proxy) as unknown as { [kind: string]: Tree[] });
      return {
        proxy,
        snapshot: mesh.snapshot(proxy),
        primary: differences(want.primary, got.primary, proxy),
        telemetry: differences(want.telemetry, got.telemetry, proxy),
      };
    });
  return {
    primary: results.flatMap(({ primary }) => primary),
    telemetry: results.flatMap(({ telemetry }) => telemetry),
    proxies: results,
  };
}

/** Their objects are in a file of their own each, which has the name of the cluster. */
function otherClustersOf(directory: string): string[] {
  return readdirSync(directory)
    .filter((file) => file.endsWith('.yaml') && file !== 'input.yaml')
    .map((file) => file.replace(/\.yaml$/, ''));
}

/** The table of names, for a proxy that asks for it. */
function namesOf(mesh: TestMesh, proxy: string): Tree {
  mesh.commit([mesh.mesh.inputs.asked.write(proxy, { typeUrls: [NAME_TABLE] })]);
  const [table] = mesh.resources(proxy).filter(({ typeUrl }) => typeUrl === NAME_TABLE);
  const names = Object.entries(readNameTable(bytesOf(table!.body)));
  return Object.fromEntries(names.map(([host, info]) => [host, { ...info, ips: [...new Set(info.ips)].sort() }]));
}
