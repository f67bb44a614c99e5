import { Command, Option } from 'commander';
import type { Environment, Origins } from '../config/setting-values.ts';
import { flagOf, type SettingName } from '../config/settings.ts';
import type { Program } from './program.ts';

/** What a command works with; tests provide their own. */
export interface World {
  /** Loaded only if a command needs it: `version` and `--help` do not. */
  readonly program: () => Promise<Program>;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly env: Environment;
  readonly signal: AbortSignal;
}

/** One command: defines its command line, and passes its exit code to `done`. */
export type CommandFile = (world: World, done: (code: number) => void) => Command;

export function addSettings(command: Command, names: readonly SettingName[]): void {
  command.option(
    '--config <file>',
    'YAML file of settings, named in camelCase; flags and environment take precedence (env: FAIRLEAD_CONFIG)',
  );
  for (const name of names) {
    const { flags, description } = flagOf(name);
    command.addOption(new Option(flags, description));
  }
}

/** Commander's option names are the names of settings. */
export function originsOf(options: Readonly<Record<string, unknown>>, world: World): Origins {
  return { flags: options as Origins['flags'], env: world.env };
}
