import { Command } from 'commander';
import { UsageError } from './usage-error.ts';
import type { CommandFile } from './world.ts';

/** Seconds. */
const LONGEST = 3_600;

export const recordCommand: CommandFile = (world, done) =>
  new Command('record')
    .description('record what a running server computes from, and which resources follow, for "fairlead replay"')
    .argument('<file>', 'where the recording goes')
    .option('--server <address>', 'host:port of its health or monitoring address, on this machine', 'localhost:8080')
    .option('--seconds <number>', `how long to record, at most ${LONGEST}`, '60')
    .addHelpText(
      'after',
      '\nWith a server in a cluster: kubectl port-forward. A recording has all objects, and no private keys.',
    )
    .action(async (file: string, { server, seconds }: { readonly server: string; readonly seconds: string }) => {
      const duration = Number(seconds);
      if (!(duration > 0 && duration <= LONGEST)) throw new UsageError(`--seconds: must be a number up to ${LONGEST}`);
      const program = await world.program();
      const { bytes } = await program.record({ file, server, seconds: duration }, world.signal);
      world.err(`${bytes} bytes\n`);
      done(0);
    });
