import { Command } from 'commander';
import { version } from '../version.ts';
import type { CommandFile } from './world.ts';

export const versionCommand: CommandFile = (world, done) =>
  new Command('version').description('print the version').action(() => {
    world.out(`fairlead ${version} (Node ${process.versions.node})\n`);
    done(0);
  });
