import { readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { cacheDirectory } from '../../test/peers/parts.ts';

/** What `make cluster` remembers, until `make cluster DOWN=1` removes it. FAIRLEAD_CLUSTER: another directory. */
export const CLUSTER = resolve(process.env['FAIRLEAD_CLUSTER'] || join(cacheDirectory(), 'cluster'));

export const LOG = join(CLUSTER, 'log');

export interface State {
  /** The process that runs the node, and ends it when it is told to. */
  readonly keeper: number;
  /** What it has done: one line each. */
  readonly steps: readonly string[];
  /** How to use it; absent until all of it is ready. */
  readonly ready?: { readonly kubeconfig: string; readonly programs: string; readonly shop: number };
}

export function readState(): State | undefined {
  try {
    return JSON.parse(readFileSync(join(CLUSTER, 'state.json'), 'utf8')) as State;
  } catch {
    return undefined;
  }
}

/** Readers see the old one or the new one. */
export async function writeState(state: State): Promise<void> {
  await mkdir(CLUSTER, { recursive: true });
  const unfinished = join(CLUSTER, 'state.json.tmp');
  await writeFile(unfinished, JSON.stringify(state));
  await rename(unfinished, join(CLUSTER, 'state.json'));
}
