import { Command } from 'commander';
import { readConfig } from '../config/config.ts';
import { settingNames } from '../config/settings.ts';
import { addSettings, type CommandFile, originsOf } from './world.ts';

export const serveCommand: CommandFile = (world, done) => {
  const command = new Command('serve').description('serve Envoys from a cluster, or from a directory of files');
  addSettings(command, settingNames);
  return command.action(async (options: Record<string, unknown>) => {
    const config = readConfig(originsOf(options, world));
    const program = await world.program();
    await program.serve(config, world.signal);
    done(0);
  });
};
