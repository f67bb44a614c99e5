import { Command, Option } from 'commander';
import type { ReplicaStatus } from './program.ts';
import { printProxies, printStatus } from './status-text.ts';
import { fromOf, replicaOptions } from './replicas.ts';
import type { CommandFile } from './world.ts';

export const statusCommand: CommandFile = (world, done) => {
  const command = replicaOptions(new Command('status'))
    .description('show how far proxies have followed the objects: who lags, since when, and for which object')
    .argument('[proxy]', 'only this one, in detail: POD.NAMESPACE, or the id of a node')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'));
  return command.action(async (proxy: string | undefined, options: Options) => {
    const { output } = options;
    const from = fromOf(options, world);
    const program = await world.program();
    const replicas = await program.status({ from, ...(proxy !== undefined && { proxy }) }, world.signal);
    const failures = replicas.flatMap((each) => ('failure' in each ? [each] : []));
    const reports = replicas.flatMap((each) => ('report' in each ? [each.report] : []));
    const isMissing = proxy !== undefined && reports.every(({ proxies }) => proxies.length === 0);
    if (output === 'json') world.out(`${JSON.stringify({ replicas: replicas.map(asJson) }, undefined, 2)}\n`);
    else if (reports.length > 0 && !isMissing)
      world.out(proxy === undefined ? printStatus(reports) : printProxies(reports));
    for (const { address, failure } of failures) world.err(`error: ${address}: ${failure}\n`);
    if (isMissing && reports.length > 0)
      world.err(`error: proxy ${proxy} is not connected to ${reports.map(({ replica }) => replica).join(', ')}\n`);
    done(failures.length > 0 || isMissing ? 1 : 0);
  });
};

interface Options extends Readonly<Record<string, unknown>> {
  readonly output: 'text' | 'json';
}

function asJson(replica: ReplicaStatus): object {
  return 'report' in replica
    ? { address: replica.address, ...replica.report }
    : { address: replica.address, error: replica.failure };
}
