import { Command } from 'commander';
import { printable } from './printable.ts';
import type { Replay } from './program.ts';
import type { CommandFile } from './world.ts';

export const replayCommand: CommandFile = (world, done) =>
  new Command('replay')
    .description('compute what a recording made by "fairlead record" has, and say whether the bytes are the same')
    .argument('<file>', 'the recording')
    .addHelpText('after', '\nExits with 1 at the first resource that differs.')
    .action(async (file: string) => {
      const program = await world.program();
      const result = await program.replay(file);
      world.out(`${textOf(result).map(printable).join('\n')}\n`);
      done(result.difference === undefined ? 0 : 1);
    });

function textOf({ commits, resources, recordedBy, end, difference }: Replay): string[] {
  const by = recordedBy === undefined ? [] : [`Recorded by another version: ${recordedBy}`];
  if (difference === undefined)
    return [`${commits} commits replayed, ${resources} resources compared: the same bytes (${end ?? ''})`, ...by];
  const { commit, resource, recorded, computed } = difference;
  return [`Commit ${commit} differs: ${resource}`, `  recorded  ${recorded}`, `  computed  ${computed}`, ...by];
}
