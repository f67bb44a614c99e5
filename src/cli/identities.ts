import { isIP } from 'node:net';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import type { ReplicaIdentities } from './program.ts';
import { fromOf, replicaOptions } from './replicas.ts';
import { table } from './text-table.ts';
import type { CommandFile } from './world.ts';

/** Below `fairlead clusters`. */
export const identitiesCommand: CommandFile = (world, done) => {
  const address = new Argument('<address>', 'an IP address').argParser((text) => {
    if (isIP(text) === 0) throw new InvalidArgumentError('It is not an IP address.');
    return text;
  });
  const command = replicaOptions(new Command('identities'))
    .description('show who has an address, as clusters of a ClusterMesh say')
    .addArgument(address)
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'));
  return command.action(async (asked: string, options: Readonly<Record<string, unknown>>) => {
    const program = await world.program();
    const replicas = await program.identities({ from: fromOf(options, world), address: asked }, world.signal);
    if (options['output'] === 'json')
      world.out(`${JSON.stringify({ replicas: replicas.map(asJson) }, undefined, 2)}\n`);
    else world.out(printIdentities(replicas));
    const failures = replicas.flatMap((each) => ('failure' in each ? [each] : []));
    for (const { address: replica, failure } of failures) world.err(`error: ${replica}: ${failure}\n`);
    done(failures.length > 0 ? 1 : 0);
  });
};

function asJson(replica: ReplicaIdentities): object {
  return 'report' in replica
    ? { address: replica.address, identities: replica.report }
    : { address: replica.address, error: replica.failure };
}

/** Exported for its tests. */
export function printIdentities(replicas: readonly ReplicaIdentities[]): string {
  const found = replicas.flatMap((replica) =>
    'report' in replica ? replica.report.map((identity) => ({ replica: replica.address, identity })) : [],
  );
  if (found.length === 0) return replicas.some((each) => 'report' in each) ? 'No cluster knows this address.\n' : '';
  const many = new Set(found.map(({ replica }) => replica)).size > 1;
  const rows = found.map(
    ({ replica, identity: { cluster, id, namespace, pod, serviceAccount, node, host, labels = {} } }) => [
      ...[cluster, String(id), namespace === '' ? pod : `${namespace}/${pod}`, serviceAccount, node || host],
      Object.entries(labels)
        .map(([name, value]) => `${name}=${value}`)
        .sort()
        .join(','),
      ...(many ? [replica] : []),
    ],
  );
  return table(['CLUSTER', 'IDENTITY', 'POD', 'ACCOUNT', 'NODE', 'LABELS', ...(many ? ['REPLICA'] : [])], rows);
}
