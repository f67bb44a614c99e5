import { Command, CommanderError } from 'commander';
import { agentCommand } from './agent.ts';
import { checkCommand } from './check.ts';
import { clustersCommand } from './clusters.ts';
import { identityCommand } from './identity.ts';
import { injectCommand } from './inject.ts';
import { interceptCommand } from './intercept.ts';
import { statusCommand } from './status.ts';
import { recordCommand } from './record.ts';
import { replayCommand } from './replay.ts';
import { printable } from './printable.ts';
import { explainCommand } from './explain.ts';
import { explainedCodes } from './program.ts';
import { releaseCommand } from './release.ts';
import { serveCommand } from './serve.ts';
import { translateCommand } from './translate.ts';
import { versionCommand, versionLine } from './version.ts';
import type { World } from './world.ts';

/** Runs one command line (without the names of node and script). Resolves with the exit code; never rejects. */
export async function runCli(argv: readonly string[], world: World): Promise<number> {
  let code = 0;
  const done = (result: number): void => {
    code = result;
  };
  const cli = new Command('fairlead')
    .description('An Envoy control plane that runs as a Kubernetes operator.')
    .version(versionLine, '-V, --version', 'print the version')
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: false });
  const commands = [
    ...[serveCommand, checkCommand, translateCommand, explainCommand, statusCommand],
    ...[clustersCommand, releaseCommand, identityCommand, recordCommand, replayCommand],
    ...[injectCommand, interceptCommand, agentCommand, versionCommand],
  ];
  for (const command of commands) {
    cli.addCommand(command(world, done));
  }
  for (const command of [cli, ...cli.commands.flatMap((one) => [one, ...one.commands])])
    command.exitOverride().configureOutput({
      writeOut: world.out,
      writeErr: world.err,
      // Commander puts its suggestion on a separate line.
      outputError: (text, write) => write(`${text.trim().replaceAll('\n', ' ')}\n`),
    });
  try {
    await cli.parseAsync(argv, { from: 'user' });
    return code;
  } catch (error) {
    // What explain says with 1 is an answer.
    const failed = argv[0] === 'explain' ? 2 : 1;
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : failed;
    world.err(`${explain(error)}\n`);
    return failed;
  }
}

/** One line for a mistake that the user can fix; everything known for a bug. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return `fairlead: ${String(error)}`;
  if ('code' in error && explainedCodes.has(String(error.code))) return `error: ${printable(error.message)}`;
  return error.stack ?? error.message;
}
