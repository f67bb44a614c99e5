import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Clock, sleep } from '../base/clock.ts';
import { Watchers } from '../directory/watchers.ts';
import type { EtcdAccess } from '../etcd/access.ts';
import { type ConfigContent, configFileIn, reasonOf } from './config-file.ts';
import { type ConfigRefusal, readEtcdConfig } from './etcd-config.ts';
import { clusterNameProblem } from './names.ts';

export interface ConfigDirectoryOptions {
  /** As Cilium's `--clustermesh-config`: the mounted Secret `cilium-clustermesh`. */
  readonly directory: string;
  /** Its file is not for itself: all clusters may have the same Secret. */
  readonly ownCluster: string;
  readonly clock: Clock;
  /** Clusters or refusals have changed. */
  readonly onChange: () => void;
  readonly signal: AbortSignal;
}

/** What a file says about the cluster that it is named after. */
export interface ConfiguredCluster {
  /** What the newest content says that is not refused. Absent: there has been none. */
  readonly access?: EtcdAccess;
  /** Why the present content is not used. */
  readonly refused?: ConfigRefusal;
}

/** A file or directory that names no cluster, although it should. */
export interface FileRefusal extends ConfigRefusal {
  readonly file: string;
}

/** Milliseconds between two looks: changes of links are not always reported. */
const EVERY = 10_000;
/** Milliseconds after a change: several files are written together, and one may be half-written. */
const QUIET = 200;
/** Besides those of this many clusters, each with its keys and certificates, files are not looked at. */
const MOST_CLUSTERS = 511;
const MOST_FILES = 4 * MOST_CLUSTERS;

/**
 * The remote clusters of a ClusterMesh, each described by a file with its name. A file counts if it contains
 * `endpoints:`; the others are keys and certificates. A changed one is used from the next connection on.
 * Source: Cilium pkg/clustermesh/common, `config.go`.
 */
export class ConfigDirectory {
  readonly #options: ConfigDirectoryOptions;
  #files: ReadonlyMap<string, TrackedFile> = new Map();
  #clusters: ReadonlyMap<string, ConfiguredCluster> = new Map();
  #refusals: readonly FileRefusal[] = [];

  constructor(options: ConfigDirectoryOptions) {
    this.#options = options;
  }

  /** By name. */
  get clusters(): ReadonlyMap<string, ConfiguredCluster> {
    return this.#clusters;
  }

  get refusals(): readonly FileRefusal[] {
    return this.#refusals;
  }

  /** Looks again and again. Ends with the signal; never rejects. */
  async follow(): Promise<void> {
    const { directory, clock, signal } = this.#options;
    let wake = new AbortController();
    const watchers = new Watchers(() => wake.abort());
    while (!signal.aborted) {
      wake = new AbortController();
      // First, so that nothing changes unseen between the two.
      const { added } = watchers.follow(new Map([[directory, await identityOf(directory)]]));
      const isSettled = await this.look();
      await sleep(clock, isSettled && !added ? EVERY : QUIET, { signal: AbortSignal.any([signal, wake.signal]) });
      if (wake.signal.aborted) await sleep(clock, QUIET, { signal });
    }
    watchers.close();
  }

  /** Looks once. False if something may be half-written: a cluster is gone when its file is gone in two looks. */
  async look(): Promise<boolean> {
    const contents = await this.#read();
    const files = 'problem' in contents ? this.#files : nextFiles(this.#files, contents.files);
    const clusters = new Map(Array.from(files, ([name, { cluster }]) => [name, cluster]));
    const refusals = 'problem' in contents ? [contents.problem] : contents.refusals;
    const isSame = isDeepStrictEqual([clusters, refusals], [this.#clusters, this.#refusals]);
    this.#files = files;
    [this.#clusters, this.#refusals] = [clusters, refusals];
    if (!isSame && !this.#options.signal.aborted) this.#options.onChange();
    return [...files.values()].every(({ isMissing }) => !isMissing);
  }

  async #read(): Promise<Contents | { readonly problem: FileRefusal }> {
    const { directory, ownCluster } = this.#options;
    let names: readonly string[];
    try {
      names = (await readdir(directory)).filter((name) => !name.startsWith('.')).sort();
    } catch (error) {
      return { problem: { file: directory, field: '', message: `cannot be read: ${reasonOf(error)}` } };
    }
    const files = new Map<string, ConfigContent>();
    const refusals: FileRefusal[] = [];
    const refuse = (file: string, message: string): number => refusals.push({ file, field: '', message });
    if (names.length > MOST_FILES)
      refuse(directory, `has ${names.length} files; the first ${MOST_FILES} are looked at, remove some`);
    for (const name of names.slice(0, MOST_FILES)) {
      if (name === ownCluster) continue;
      const problem = clusterNameProblem(name);
      const content = await configFileIn(join(directory, name));
      if (content === undefined || ('unreadable' in content && problem !== undefined)) continue;
      if (problem !== undefined) refuse(name, `is not the name of a cluster: ${problem}`);
      else if (files.size === MOST_CLUSTERS) refuse(name, `is ignored: there are more than ${MOST_CLUSTERS} clusters`);
      else files.set(name, content);
    }
    return { files, refusals };
  }
}

interface Contents {
  readonly files: ReadonlyMap<string, ConfigContent>;
  readonly refusals: readonly FileRefusal[];
}

interface TrackedFile {
  readonly cluster: ConfiguredCluster;
  /** Of the content that {@link cluster} is from; empty if it could not be read. */
  readonly hash: string;
  readonly isMissing: boolean;
}

function nextFiles(
  before: ReadonlyMap<string, TrackedFile>,
  contents: ReadonlyMap<string, ConfigContent>,
): ReadonlyMap<string, TrackedFile> {
  const files = new Map(Array.from(contents, ([name, content]) => [name, nextFile(before.get(name), content)]));
  for (const [name, file] of before)
    if (!contents.has(name) && !file.isMissing) files.set(name, { ...file, isMissing: true });
  return files;
}

function nextFile(before: TrackedFile | undefined, content: ConfigContent): TrackedFile {
  const hash = 'text' in content ? createHash('sha256').update(content.text).digest('hex') : '';
  if (before !== undefined && hash !== '' && hash === before.hash) return { ...before, isMissing: false };
  const read =
    'text' in content ? readEtcdConfig(content.text) : { refused: { field: '', message: content.unreadable } };
  const cluster = 'access' in read ? read : { ...before?.cluster, ...read };
  return { cluster, hash, isMissing: false };
}

/** It changes when another directory takes the place of this one. */
async function identityOf(directory: string): Promise<string> {
  try {
    const { dev, ino } = await stat(directory);
    return `${dev}:${ino}`;
  } catch {
    return '';
  }
}
