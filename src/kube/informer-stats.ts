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
