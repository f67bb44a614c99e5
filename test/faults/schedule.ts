import { FAULTS, type Fault, type FaultName } from './api-way.ts';

/** Some faults for some time, of some of the replicas. */
export interface Episode {
  /** The first is what the episode is about. */
  readonly faults: readonly Fault[];
  /** By number. */
  readonly replicas: readonly number[];
  /** At least: it lasts until the first fault has hit something, and for some changes and requests. */
  readonly ms: number;
}

/** How long an episode takes, and the time between two. Milliseconds. */
const LENGTH = { least: 400, more: 1_600 };
const PAUSE = { least: 100, more: 500 };
/** After so long, everything that is told to list again has done so. */
const LISTED = 1_500;

/** What objects of the shop are read as. */
const KINDS = ['services', 'endpointslices', 'pods', 'virtualservices', 'destinationrules', 'serviceentries', 'leases'];

/**
 * What a list of these lacks is nobody's decision. Of other kinds, the list is all that there is: what it lacks has been
 * deleted.
 */
const DOUBTED = new Set(['endpointslices']);

/** In each round every fault comes up once, in random order. */
export function* schedule(rounds: number, random: () => number): Generator<Episode> {
  for (let round = 0; round < rounds; round++) {
    for (const name of shuffled(FAULTS, random)) {
      const least = name.endsWith('lists') ? LISTED : LENGTH.least;
      yield { ...episodeOf(name, random), ms: least + random() * LENGTH.more };
      yield { faults: [], replicas: [0, 1], ms: PAUSE.least + random() * PAUSE.more };
    }
  }
}

function episodeOf(name: FaultName, random: () => number): Omit<Episode, 'ms'> {
  const replicas = [[0], [1], [0, 1], [0, 1]][Math.floor(random() * 4)]!;
  if (name === 'short lists') {
    // Nobody lists again without a reason.
    return { replicas, faults: [{ name, of: DOUBTED }, { name: 'gone' }] };
  }
  if (name === 'broken lists') return { replicas, faults: [{ name }, { name: 'gone' }] };
  if (name === 'unreachable' || random() < 0.5) return { replicas, faults: [{ name }] };
  const of = shuffled(KINDS, random).slice(0, 1 + Math.floor(random() * (KINDS.length - 1)));
  return { replicas, faults: [{ name, of: new Set(of) }] };
}

function shuffled<T>(all: readonly T[], random: () => number): readonly T[] {
  return all
    .map((each) => ({ each, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ each }) => each);
}
