/** How an informer is doing. */
export interface InformerStats {
  readonly synced: boolean;
  /** Why the last request failed, e.g. `403 Forbidden`; absent if the server has been reached since. */
  readonly trouble?: string;
  readonly installed: boolean;
  readonly objects: number;
  /** Objects that the last list lacks, and that are kept until another one agrees. */
  readonly doubted: number;
  readonly lists: number;
  readonly watches: number;
  readonly events: number;
  readonly errors: number;
  readonly malformed: number;
  /** Since the server last sent anything; up to a minute if nothing happens. */
  readonly stalenessSeconds: number;
}

/** The figures of several informers that read one kind together. */
export function joinedStats(all: readonly InformerStats[]): InformerStats {
  const [only] = all;
  if (only !== undefined && all.length === 1) return only;
  const sum = (of: (stats: InformerStats) => number): number => all.reduce((total, stats) => total + of(stats), 0);
  const trouble = all.find((stats) => stats.trouble !== undefined)?.trouble;
  return {
    synced: all.every(({ synced }) => synced),
    ...(trouble !== undefined && { trouble }),
    installed: all.every(({ installed }) => installed),
    objects: sum(({ objects }) => objects),
    doubted: sum(({ doubted }) => doubted),
    // Each lists once in a while; that of the most is what says how often.
    lists: Math.max(...all.map(({ lists }) => lists)),
    watches: sum(({ watches }) => watches),
    events: sum(({ events }) => events),
    errors: sum(({ errors }) => errors),
    malformed: sum(({ malformed }) => malformed),
    stalenessSeconds: Math.max(...all.map(({ stalenessSeconds }) => stalenessSeconds)),
  };
}
