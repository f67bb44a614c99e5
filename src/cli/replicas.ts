import { type Command, Option } from 'commander';
import { readClusterSettings } from '../config/config.ts';
import { clusterSettingNames } from '../config/settings.ts';
import type { ReplicaRequest } from './program.ts';
import { addSettings, originsOf, type World } from './world.ts';

/** Options of a command that asks replicas. */
export function replicaOptions(command: Command): Command {
  command.addOption(
    new Option(
      '--address <host:port>',
      'health or monitoring address of a replica, on this machine; may be repeated (default: all replicas in the cluster)',
    ).argParser((address, former: readonly string[] = []) => [...former, address]),
  );
  addSettings(command, clusterSettingNames);
  return command;
}

/** Which replicas these options mean. */
export function fromOf(options: Readonly<Record<string, unknown>>, world: World): ReplicaRequest['from'] {
  const addresses = options['address'] as readonly string[] | undefined;
  return addresses === undefined ? readClusterSettings(originsOf(options, world)) : { addresses };
}
