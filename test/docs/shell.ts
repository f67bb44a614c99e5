import { chmod, cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { pathOf } from '../peers/peer.ts';
import type { PeerName } from '../peers/peer.ts';
import { plainEnvironment, run } from '../peers/process.ts';
import { ROOT } from './markdown.ts';

/** A shell in a clone of this repository, as a reader of the guide has it, whose examples may be changed. */
export interface Shell {
  readonly directory: string;
  /** Runs commands until one fails. */
  run(commands: string): ReturnType<typeof run>;
}

export interface ShellOptions {
  /** Beside `fairlead`. */
  readonly programs?: readonly PeerName[];
  readonly env?: Readonly<Record<string, string>>;
  readonly onEnd?: OnEnd;
}

export async function createShell({ programs = [], env = {}, onEnd }: ShellOptions = {}): Promise<Shell> {
  const directory = await temporaryDirectory(onEnd);
  for (const name of ['src', 'charts', 'node_modules', 'package.json']) await symlink(join(ROOT, name), join(directory, name));
  await cp(join(ROOT, 'examples'), join(directory, 'examples'), { recursive: true });
  const bin = join(directory, '.bin');
  await mkdir(bin);
  for (const name of programs) await symlink(pathOf(name), join(bin, name));
  const fairlead = join(bin, 'fairlead');
  await writeFile(fairlead, `#!/bin/bash\nexec ${process.execPath} ${join(ROOT, 'src/main.ts')} "$@"\n`);
  await chmod(fairlead, 0o755);
  const variables = { ...plainEnvironment(), HOME: directory, ...env, PATH: `${bin}:${process.env['PATH']}` };
  return {
    directory,
    run: (commands) =>
      // Readers have a terminal, where aliases work.
      run('bash', ['-eo', 'pipefail', '-c', `shopt -s expand_aliases\n${commands}`], { cwd: directory, env: variables }),
  };
}

/** A command of a transcript, and what is printed. */
export interface Step {
  readonly command: string;
  readonly output: string;
}

/** A transcript: commands begin with `$ `, and go on where a line ends with a backslash. */
export function stepsOf(transcript: string): readonly Step[] {
  const steps: { command: string; output: string }[] = [];
  let open = false;
  for (const line of transcript.trimEnd().split('\n')) {
    const last = steps.at(-1);
    if (line.startsWith('$ ')) steps.push({ command: line.slice(2), output: '' });
    else if (last === undefined) throw new Error(`no command before ${line}`);
    else if (open) last.command += `\n${line}`;
    else last.output += `${line}\n`;
    open = (open || line.startsWith('$ ')) && line.endsWith('\\');
  }
  return steps;
}
