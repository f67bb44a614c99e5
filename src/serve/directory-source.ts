import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../base/clock.ts';
import { watchDirectory } from '../directory/watch.ts';
import { allocateAll } from '../engine/address-allocator.ts';
import type { Engine } from '../engine/engine.ts';
import { reportLog } from '../engine/problem-log.ts';
import type { AllocatedAddress } from '../model/address-claim.ts';
import { ClusterCredentials } from '../other-clusters/cluster-credentials.ts';
import { followOtherClusters } from '../other-clusters/other-clusters.ts';
import type { ObjectSource, ObjectSourceOptions } from './object-source.ts';
import { heapOf, kubeconfigFiles, meshConfigChoice } from './source-options.ts';

/** Rejects if a directory is not available. */
export async function startDirectorySource(
  paths: readonly string[],
  { config, engine, validate, log, surroundings, signal }: ObjectSourceOptions,
): Promise<ObjectSource> {
  const { clock = systemClock } = surroundings;
  const report = reportLog(log);
  const credentials = new ClusterCredentials(engine, clock);
  credentials.read({
    cluster: undefined,
    named: {
      want: (key) => {
        if (!engine.credentials.has(key)) engine.credentials.found(key, undefined);
      },
      unwant: () => undefined,
    },
    // Whoever writes the files decides which proxies there are.
    review: () => Promise.resolve(true),
    signal,
  });
  allocateForFiles(engine);
  const directory = await watchDirectory({
    paths,
    validate,
    sink: meshConfigChoice(config, engine),
    onReports: (_, appeared) => report(appeared),
    signal,
  });
  const others = followOtherClusters(config, engine, kubeconfigFiles(config), {
    ...{ credentials, log, clock, signal },
    heapBytes: heapOf(surroundings),
  });
  return {
    ready: others.ready,
    waitingFor: () => others.waitingFor(),
    async end() {
      await directory.ended;
      await others.end();
    },
    otherClusters: others,
    files: () => directory.reports(),
    locate: ({ object, field }) => {
      const place = directory.locate(object, field);
      return place && `${place.file}:${place.line}`;
    },
  };
}

/** Files have no status to keep automatic addresses in: they follow from all of them together. */
function allocateForFiles({ mesh, committer }: Engine): void {
  let before: ReadonlyMap<string, readonly AllocatedAddress[]> = new Map();
  const write = committer.into(mesh.inputs.allocated);
  mesh.graph.follow(mesh.wanted.addresses, () => {
    const after = allocateAll(mesh.wanted.addresses.entries());
    for (const key of new Set([...before.keys(), ...after.keys()]))
      if (!isDeepStrictEqual(before.get(key), after.get(key))) write(key, after.get(key));
    before = after;
  });
}
