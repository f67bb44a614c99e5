import { setImmediate } from 'node:timers/promises';
import { type Kubeconfig, type KubeconfigRules, readKubeconfig } from './kubeconfig.ts';
import { MOST_CLUSTERS, type OwnedKubeconfigs } from './owned-clusters.ts';
import { type Owner, ownerKey } from './owner.ts';

/** A kubeconfig as its owner has it. */
export interface WrittenKubeconfig {
  /** The cluster; absent: the kubeconfig says it. */
  readonly id?: string;
  readonly text: string;
  readonly encoding: 'base64' | 'utf8';
}

/** What an owner has. */
export interface OwnerContent {
  readonly owner: Owner;
  /** RFC 3339; empty for files. */
  readonly created: string;
  readonly kubeconfigs: readonly WrittenKubeconfig[];
  /** Why there are none. */
  readonly problem?: string;
  /** More that are not in the list. */
  readonly ignored?: number;
}

export interface KubeconfigsOptions {
  readonly rules: KubeconfigRules;
  /** Everything that was said before the call has been read. */
  readonly changed: () => void;
  readonly signal: AbortSignal;
}

interface Known extends OwnedKubeconfigs {
  readonly written: ReadonlyMap<string, { readonly text: string; readonly kubeconfig: Kubeconfig }>;
}

/**
 * The kubeconfigs of all owners. Each is read once, in a turn of the event loop of its own: a long one takes a while, and
 * many may change at once.
 */
export class Kubeconfigs {
  readonly #options: KubeconfigsOptions;
  readonly #known = new Map<string, Known>();
  /** Owners that have something new to say; undefined: they are gone. */
  readonly #waiting = new Map<string, OwnerContent | undefined>();
  #reading: Promise<void> = Promise.resolve();
  #isReading = false;

  constructor(options: KubeconfigsOptions) {
    this.#options = options;
  }

  all(): readonly OwnedKubeconfigs[] {
    return [...this.#known.values()];
  }

  /** Other owners are gone. */
  replace(contents: readonly OwnerContent[]): void {
    const there = new Set(contents.map(({ owner }) => ownerKey(owner)));
    for (const key of [...this.#known.keys(), ...this.#waiting.keys()])
      if (!there.has(key)) this.#waiting.set(key, undefined);
    for (const content of contents) this.#waiting.set(ownerKey(content.owner), content);
    this.#read();
  }

  put(content: OwnerContent): void {
    this.#waiting.set(ownerKey(content.owner), content);
    this.#read();
  }

  delete(owner: Owner): void {
    this.#waiting.set(ownerKey(owner), undefined);
    this.#read();
  }

  /** Resolves once everything that was said so far has been read, or the signal has fired. */
  idle(): Promise<void> {
    return this.#reading;
  }

  #read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#reading = this.#readAll();
  }

  async #readAll(): Promise<void> {
    const { signal, changed } = this.#options;
    // Whatever is said before the first turn is read together.
    await setImmediate();
    while (this.#waiting.size > 0 && !signal.aborted) {
      const round = [...this.#waiting];
      this.#waiting.clear();
      const read = new Map<string, Known | undefined>();
      for (const [key, content] of round) read.set(key, content && (await this.#readOwner(key, content)));
      if (signal.aborted) return;
      // At once: a cluster may move from one owner to another.
      for (const [key, known] of read) {
        if (known === undefined) this.#known.delete(key);
        else this.#known.set(key, known);
      }
      changed();
    }
    this.#isReading = false;
  }

  async #readOwner(key: string, { owner, created, problem, ...content }: OwnerContent): Promise<Known> {
    const { rules, signal } = this.#options;
    const former = this.#known.get(key);
    const written = new Map<string, { text: string; kubeconfig: Kubeconfig }>();
    const kubeconfigs = new Map<string, Kubeconfig>();
    for (const { id, text, encoding } of content.kubeconfigs.slice(0, MOST_CLUSTERS)) {
      if (signal.aborted) break;
      const before = former?.written.get(id ?? '');
      const isSame = before?.text === text;
      if (!isSame) await setImmediate();
      const plain = (): string => Buffer.from(text, encoding).toString('utf8');
      const kubeconfig = isSame ? before.kubeconfig : readKubeconfig(plain(), rules);
      written.set(id ?? '', { text, kubeconfig });
      kubeconfigs.set(id ?? kubeconfig.name ?? soleCluster(former) ?? '', kubeconfig);
    }
    if (problem !== undefined) kubeconfigs.set(soleCluster(former) ?? '', { refused: { field: '', message: problem } });
    const ignored = Math.max(0, content.kubeconfigs.length - MOST_CLUSTERS) + (content.ignored ?? 0);
    return { owner, created, kubeconfigs, ignored, written };
  }
}

/** A file that cannot be read any more is still about the same cluster. */
function soleCluster(former: OwnedKubeconfigs | undefined): string | undefined {
  const [id] = former?.kubeconfigs.keys() ?? [];
  return id === '' ? undefined : id;
}
