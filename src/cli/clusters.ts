import { Command, Option } from 'commander';
import type { ClusterReport, ExportReport } from '../debug/cluster-report.ts';
import type { ReplicaClusters } from './program.ts';
import { identitiesCommand } from './identities.ts';
import { fromOf, replicaOptions } from './replicas.ts';
import { duration, table } from './text-table.ts';
import { type CommandFile } from './world.ts';

export const clustersCommand: CommandFile = (world, done) => {
  const command = replicaOptions(new Command('clusters'))
    .description('show the clusters that objects come from: how far each has been read, and what is wrong')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .helpCommand(false)
    .addCommand(identitiesCommand(world, done));
  return command.action(async (options: Readonly<Record<string, unknown>>) => {
    const program = await world.program();
    const replicas = await program.clusters({ from: fromOf(options, world) }, world.signal);
    if (options['output'] === 'json')
      world.out(`${JSON.stringify({ replicas: replicas.map(asJson) }, undefined, 2)}\n`);
    else world.out(printClusters(replicas, Date.now()));
    const failures = replicas.flatMap((each) => ('failure' in each ? [each] : []));
    for (const { address, failure } of failures) world.err(`error: ${address}: ${failure}\n`);
    done(failures.length > 0 ? 1 : 0);
  });
};

function asJson(replica: ReplicaClusters): object {
  return 'report' in replica
    ? { address: replica.address, clusters: replica.report }
    : { address: replica.address, error: replica.failure };
}

/** One line for each cluster and replica, and below them what is wrong. Exported for its tests. */
export function printClusters(replicas: readonly ReplicaClusters[], now: number): string {
  const found = replicas.flatMap((replica) =>
    'report' in replica ? replica.report.map((cluster) => ({ replica: replica.address, cluster })) : [],
  );
  if (found.length === 0) return '';
  const many = new Set(found.map(({ replica }) => replica)).size > 1;
  const rows = found.map(({ replica, cluster }) => [
    ...[cluster.id, cluster.secretName, cluster.phase.toUpperCase()],
    cluster.since === undefined ? '' : duration(Math.max(0, now - Date.parse(cluster.since))),
    objectsOf(cluster),
    cluster.stalenessSeconds === undefined ? '' : `${duration(cluster.stalenessSeconds * 1_000)} ago`,
    ...(many ? [replica] : []),
  ]);
  const titles = ['CLUSTER', 'NAMED BY', 'STATE', 'FOR', 'OBJECTS', 'HEARD', ...(many ? ['REPLICA'] : [])];
  const troubles = found.flatMap(({ replica, cluster }) =>
    troublesOf(cluster).map((trouble) => [cluster.id, trouble, ...(many ? [replica] : [])]),
  );
  const below = table(['CLUSTER', 'REMARK', ...(many ? ['REPLICA'] : [])], troubles);
  return table(titles, rows) + (troubles.length === 0 ? '' : `\n${below}`);
}

function objectsOf({ objects }: ClusterReport): string {
  return objects === undefined ? '' : String(Object.values(objects).reduce((sum, count) => sum + count, 0));
}

function troublesOf({
  trouble,
  missingRights = [],
  refusals = [],
  leftOut,
  clusterMesh,
  clusterMeshExport,
}: ClusterReport): readonly string[] {
  return [
    ...(trouble === undefined ? [] : [`${trouble.reason}, since ${trouble.since}`]),
    ...missingRights,
    ...refusals,
    ...(clusterMesh?.lacks === undefined ? [] : [clusterMesh.lacks]),
    ...(leftOut === undefined || leftOut.namespaces === 0 ? [] : [printLeftOut(leftOut)]),
    ...(clusterMeshExport === undefined ? [] : printExport(clusterMeshExport)),
  ];
}

function printExport({ phase, endpoint = '', keys, pending, refused, refusedInAll, unlisted, trouble }: ExportReport) {
  if (trouble !== undefined) return [`ClusterMesh export: ${trouble.reason}, since ${trouble.since}`];
  if (phase !== 'writing' && phase !== 'written') return [];
  const [first] = refused;
  return [
    `ClusterMesh export: ${keys} keys are in ${endpoint}${pending === 0 ? '' : `, ${pending} are still to be written`}`,
    ...(unlisted === undefined
      ? []
      : [`ClusterMesh export: stale keys stay until their lease ends, because etcd does not list them: ${unlisted}`]),
    ...(first === undefined
      ? []
      : [`ClusterMesh export: etcd refuses ${refusedInAll} keys; the first is ${first.key}: ${first.reason}`]),
  ];
}

/** Namespaces that are named. */
const NAMED = 5;

function printLeftOut({ namespaces, names, objects }: NonNullable<ClusterReport['leftOut']>): string {
  const named = names.slice(0, NAMED).join(', ') + (namespaces > NAMED ? ', ...' : '');
  return `${objects} objects are left out: discoverySelectors do not select their namespaces (${namespaces}: ${named})`;
}
