/** Where kubeconfigs come from. */
export interface KubeconfigSource {
  /** Resolves once they were read, or it is clear that this is not allowed: other clusters may not be wanted. */
  readonly known: Promise<void>;
  /** Resolves once the signal has fired and nothing runs any more. */
  readonly ended: Promise<void>;
  /** What {@link known} is waiting for, for people. */
  waitingFor(): readonly string[];
  events(): KubeconfigEvents;
}

/** How many owners of kubeconfigs came, changed and went. */
export type KubeconfigEvents = Readonly<Record<'add' | 'update' | 'delete', number>>;
