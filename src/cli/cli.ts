import { Command, CommanderError } from 'commander';
import { printable } from './printable.ts';
import { explainedCodes } from './program.ts';
import { versionLine } from './version.ts';
import type { CommandFile, World } from './world.ts';

/** In the order of the help. A command is loaded only where it is called: an agent runs in every Pod. */
const commands: Readonly<Record<string, () => Promise<CommandFile>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand,
  check: async () => (await import('./check.ts')).checkCommand,
  translate: async () => (await import('./translate.ts')).translateCommand,
  explain: async () => (await import('./explain.ts')).explainCommand,
  status: async () => (await import('./status.ts')).statusCommand,
  clusters: async () => (await import('./clusters.ts')).clustersCommand,
  release: async () => (await import('./release.ts')).releaseCommand,
  identity: async () => (await import('./identity.ts')).identityCommand,
  record: async () => (await import('./record.ts')).recordCommand,
  replay: async () => (await import('./replay.ts')).replayCommand,
  inject: async () => (await import('./inject.ts')).injectCommand,
  intercept: async () => (await import('./intercept.ts')).interceptCommand,
  agent: async () => (await import('./agent.ts')).agentCommand,
  version: async () => (await import('./version.ts')).versionCommand,
};

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
  const [name = ''] = argv;
  // For anything else, all: commander lists them, or suggests one.
  const called = Object.hasOwn(commands, name) ? [commands[name]!] : Object.values(commands);
  for (const load of called) cli.addCommand((await load())(world, done));
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
    const failed = name === 'explain' ? 2 : 1;
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
