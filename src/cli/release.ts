import { Command } from 'commander';
import { readClusterSettings } from '../config/config.ts';
import type { ServiceName } from './program.ts';
import { UsageError } from './usage-error.ts';
import { type CommandFile, addSettings, originsOf } from './world.ts';

export const releaseCommand: CommandFile = (world, done) => {
  const command = new Command('release')
    .description('stop serving the endpoints of a Service that are no longer listed; /debug/held shows them')
    .argument('<namespace/service>', 'the Service');
  addSettings(command, ['kubeconfig', 'context']);
  return command.action(async (text: string, options: Record<string, unknown>) => {
    const service = serviceOf(text);
    const program = await world.program();
    await program.release(readClusterSettings(originsOf(options, world)), service, world.signal);
    world.out(`Service ${text}: what was held until now is released\n`);
    done(0);
  });
};

function serviceOf(text: string): ServiceName {
  const [namespace = '', name = '', ...rest] = text.split('/');
  if (namespace === '' || name === '' || rest.length > 0)
    throw new UsageError(`${JSON.stringify(text)} is not a Service; use NAMESPACE/SERVICE`);
  return { namespace, name };
}
