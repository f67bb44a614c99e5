/**
 * `make cluster`: a real Kubernetes of one node on this machine, with Fairlead and the bookshop. It runs until
 * `cluster.ts --down` (`make cluster DOWN=1`), which removes every trace.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { removeCgroups } from '../../test/node/cgroups.ts';
import { NODE } from '../../test/node/configuration.ts';
import { LOCK } from '../../test/node/only-node.ts';
import { whyNoNode } from '../../test/node/why-no-node.ts';
import { poll } from '../../test/peers/process.ts';
import { CLUSTER, LOG, type State, readState } from './state.ts';

/** The first time, images are built from nothing. */
const LONGEST_START_MS = 900_000;
const LONGEST_STOP_MS = 60_000;

process.exitCode = process.argv.includes('--down') ? await down() : await up();

async function up(): Promise<number> {
  const before = readState();
  if (before !== undefined && isKeeper(before.keeper)) {
    console.log(before.ready ? usage(before) : 'The cluster is being started. To remove it: make cluster DOWN=1');
    return before.ready ? 0 : 1;
  }
  const reason = whyNoNode();
  if (reason !== undefined) {
    console.log(reason.replace('skipped: ', ''));
    return 1;
  }
  // Of one that was killed.
  await remove(before);

  const start = performance.now();
  mkdirSync(CLUSTER, { recursive: true });
  const log = openSync(LOG, 'w');
  const keeper = spawn(process.execPath, [join(import.meta.dirname, 'keep.ts')], {
    detached: true,
    stdio: ['ignore', log, log],
  });
  keeper.unref();
  let ended = false;
  keeper.once('exit', () => (ended = true));
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  let shown = 0;
  try {
    const state = await poll(
      'the cluster',
      () => {
        const now = readState();
        for (const step of now?.steps.slice(shown) ?? []) console.log(`  ${step}`);
        shown = now?.steps.length ?? 0;
        if (ended) throw new Error(`The cluster did not start:\n${readFileSync(LOG, 'utf8').slice(-8000)}`);
        return Promise.resolve(now?.ready ? now : undefined);
      },
      { signal: interrupted.signal, timeoutMs: LONGEST_START_MS },
    );
    console.log(`The cluster is up (${((performance.now() - start) / 1000).toFixed(0)} s).\n${usage(state)}`);
    return 0;
  } catch (error) {
    console.error(interrupted.signal.aborted ? 'interrupted' : error instanceof Error ? error.message : error);
    await down();
    return 1;
  }
}

async function down(): Promise<number> {
  const state = readState();
  if (state === undefined) {
    console.log('There is no cluster.');
    return 0;
  }
  if (isKeeper(state.keeper)) process.kill(state.keeper, 'SIGTERM');
  await poll('the end of the cluster', () => Promise.resolve(isKeeper(state.keeper) ? undefined : true), {
    timeoutMs: LONGEST_STOP_MS,
  });
  await remove(state);
  console.log('The cluster is removed.');
  return 0;
}

/** What is left by a process that could not clean up, and the state itself. */
async function remove(state: State | undefined): Promise<void> {
  if (state === undefined) return;
  await removeCgroups(NODE.cgroup);
  await rm(CLUSTER, { recursive: true, force: true });
  const holder = await readFile(LOCK, 'utf8').catch(() => '');
  if (holder === `${state.keeper}`) await rm(LOCK, { force: true });
}

/** Another process may have been given its id. */
function isKeeper(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('tools/cluster/keep.ts');
  } catch {
    return false;
  }
}

function usage({ ready }: State): string {
  if (ready === undefined) return '';
  return `
  export KUBECONFIG=${ready.kubeconfig} PATH=${ready.programs}:$PATH

  kubectl get pods -A
  kubectl get virtualservices,destinationrules,serviceentries,gateways -A
  helm -n istio-system list
  istioctl proxy-status --xds-label app.kubernetes.io/name=fairlead
  curl http://127.0.0.1:${ready.shop}/
  kubectl -n istio-system rollout restart deployment/fairlead

  make cluster DOWN=1     removes every trace
`;
}
