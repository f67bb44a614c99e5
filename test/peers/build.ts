/**
 * `make peers`: fetches Envoy, Debian packages and Istio's CRDs, and builds etcd, helm, CoreDNS, kstatus, istioctl and Kubernetes
 * into the cache, one at a time; given names, only those. Parts that cannot be built here are reported and skipped; a build that fails is an error.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { lock } from './lock.ts';
import { PARTS, cacheDirectory, directoryOf } from './parts.ts';
import type { Part } from './parts.ts';
import { peersAreRequired, whyNotBuilt } from './peer.ts';

const named = process.argv.slice(2);
console.log(`peers: cache is ${cacheDirectory()}`);
for (const part of PARTS) {
  if (named.length > 0 && !named.includes(part.name)) continue;
  const given = givenBy(part);
  const reason = given ? undefined : whyNotBuilt(part);
  if (given) console.log(`${part.name}: taken from ${given}`);
  else if (reason) report(part, reason);
  else await provide(part);
}

function givenBy(part: Part): string | undefined {
  const { ENVOY_BIN, KUBEBUILDER_ASSETS } = process.env;
  if (part.name === 'envoy') return ENVOY_BIN;
  return part.name === 'etcd' || part.name === 'kubernetes' ? KUBEBUILDER_ASSETS : undefined;
}

function report(part: Part, reason: string): void {
  console.log(`${part.name}: ${reason}`);
  if (peersAreRequired()) process.exitCode = 1;
}

async function provide(part: Part): Promise<void> {
  const directory = directoryOf(part);
  if (existsSync(directory)) {
    console.log(`${part.name}: in the cache`);
    return;
  }
  mkdirSync(dirname(directory), { recursive: true });
  // Only saves work: two processes that build the same part both succeed.
  const unlock = await lock(`${dirname(directory)}.lock`);
  try {
    if (!existsSync(directory)) build(part, directory);
  } finally {
    unlock();
  }
}

/** Builds in a temporary directory, so that whatever has the final name is complete. */
function build(part: Part, directory: string): void {
  const unfinished = `${directory}.tmp-${process.pid}`;
  mkdirSync(unfinished);
  try {
    const [program, ...args] = part.build(unfinished);
    console.log(`${part.name}: ${part.needs === 'go' ? 'building (minutes the first time)' : 'fetching'} ...`);
    const start = performance.now();
    const { status, error } = spawnSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    if (status !== 0) throw new Error(`${part.name}: ${program} failed`, { cause: error });
    renameSync(unfinished, directory);
    console.log(`${part.name}: done in ${((performance.now() - start) / 1000).toFixed(0)} s`);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}
