import { Command } from 'commander';
import { version } from '../base/version.ts';
import type { CommandFile } from './world.ts';

/** What `fairlead version` and `fairlead --version` print. */
export const versionLine = `fairlead ${version} (Node ${process.versions.node})`;

export const versionCommand: CommandFile = (world, done) =>
  new Command('version').description('print the version').action(() => {
    world.out(`${versionLine}\n`);
    done(0);
  });
