import type { ObjectSink } from '../api/source.ts';
import {
  type FileContent,
  type Merged,
  mergeContents,
  nextContent,
  type PlacedObject,
  unreadableContent,
} from './contents.ts';
import { type FoundFile, type Listing, listFiles, readText, refuseUnreadable } from './files.ts';
import { Lines } from './lines.ts';
import { type Locate, locateIn } from './load.ts';
import type { Validate } from '../api/validate.ts';
import type { FileReport } from './report.ts';
import { Revisions } from './revisions.ts';
import { Wake } from './wake.ts';
import { Watchers } from './watchers.ts';

export interface WatchOptions {
  /** Directories, or single files. */
  readonly paths: readonly string[];
  readonly validate: Validate;
  readonly sink: ObjectSink;
  /** Called when the problems with the files change: with all current reports, and the new ones among them. */
  readonly onReports: (reports: readonly FileReport[], appeared: readonly FileReport[]) => void;
  readonly signal: AbortSignal;
  /** Milliseconds between scans without a change event; finds changes that the file system does not report. */
  readonly pollInterval?: number;
}

export interface DirectorySource {
  /** The current problems with the files. */
  reports(): readonly FileReport[];
  readonly locate: Locate;
  /** Settles once the signal has fired and nothing is watched any more. */
  readonly ended: Promise<void>;
}

/** A file that changed less than this ago may be half-written. Milliseconds, as are all of these. */
const SETTLED = 20;
/** Wait after a change: writers often make several in a row, and a file that was left alone since can be read at once. */
const QUIET = SETTLED + 1;
/** A file that keeps changing is read anyway after this time. */
const PATIENCE = 1_000;
/** Time for which a file may be missing: editors and version control remove a file before they write the new one. */
const GONE = 50;
/** Poll interval if the file system has no more watches. */
const UNWATCHED_POLL = 300;

/**
 * Follows the files at the paths. When the promise resolves, the sink has all objects; after that, it is told of every
 * change, with all changes of one moment within one turn. Rejects with a DirectoryError if a path cannot be read at the
 * start; later, such a path is reported and its objects stay.
 */
export async function watchDirectory(options: WatchOptions): Promise<DirectorySource> {
  const watch = new DirectoryWatch(options);
  try {
    await watch.start();
  } catch (error) {
    watch.close();
    throw error;
  }
  return { reports: () => watch.reports, locate: watch.locate, ended: watch.run() };
}

interface Tracked {
  /** Stamp of the content that was read; empty if it must be read again. */
  readonly stamp: string;
  readonly content: FileContent;
  readonly missingSince?: number;
}

class DirectoryWatch {
  reports: readonly FileReport[] = [];
  readonly locate: Locate;
  readonly #options: WatchOptions;
  readonly #lines = new Lines();
  readonly #revisions: Revisions;
  readonly #wake = new Wake();
  readonly #watchers = new Watchers(() => this.#wake.up());
  #unsettledSince = new Map<string, number>();
  #files = new Map<string, Tracked>();
  #objects: ReadonlyMap<string, PlacedObject> = new Map();
  #taken: readonly FileContent[] | undefined;
  #merged: Merged = { objects: new Map(), reports: [] };
  #pause = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#revisions = new Revisions(options.sink);
    this.locate = locateIn(() => this.#objects, this.#lines);
  }

  async start(): Promise<void> {
    await this.#look('first');
  }

  async run(): Promise<void> {
    const { signal, paths } = this.#options;
    while (!signal.aborted) {
      const changed = await this.#wake.wait(this.#pause, signal);
      if (changed) await new Wake().wait(QUIET, signal);
      if (signal.aborted) break;
      this.#wake.clear();
      try {
        await this.#look('again');
      } catch (error) {
        const message = `cannot be watched: ${error instanceof Error ? error.message : String(error)}`;
        this.#report([...this.#merged.reports, { severity: 'error', file: paths.join(', '), field: '', message }]);
        this.#pause = UNWATCHED_POLL;
      }
    }
    this.close();
  }

  close(): void {
    this.#watchers.close();
  }

  async #look(time: 'first' | 'again'): Promise<void> {
    const started = performance.now();
    const listing = await listFiles(this.#options.paths);
    if (time === 'first') refuseUnreadable(listing);
    const { watched, added } = this.#watchers.follow(listing.directories);
    const files = new Map<string, Tracked>();
    // Changes between the listing and a new watch were missed.
    let soon = added ? 0 : Infinity;
    const unsettled = this.#unsettledSince;
    this.#unsettledSince = new Map();
    for (const file of listing.files) {
      const old = this.#files.get(file.path);
      const rest = this.#unsettled(file, old, unsettled);
      soon = Math.min(soon, rest);
      const next = rest === Infinity || time === 'first' ? this.#read(file, old, rest !== Infinity) : later(old);
      if (next !== undefined) files.set(file.path, next);
      if (this.#options.signal.aborted) return;
    }
    const present = [...files.values()].map(({ content }) => content);
    const kept: FileContent[] = [];
    for (const [path, tracked] of this.#files) {
      if (files.has(path)) continue;
      const lost = [...listing.unreadable.keys()].some((root) => path === root || path.startsWith(`${root}/`));
      const missingSince = tracked.missingSince ?? started;
      if (!lost && started - missingSince >= GONE) continue;
      if (!lost) soon = Math.min(soon, GONE);
      files.set(path, { ...tracked, stamp: '', ...(lost ? {} : { missingSince }) });
      kept.push(tracked.content);
    }
    this.#files = files;
    this.#take(present, kept, [...lostPaths(listing), ...(watched ? [] : [unwatched(this.#options.paths)])]);
    const poll = watched ? (this.#options.pollInterval ?? 1_000) : UNWATCHED_POLL;
    // Scanning very many files takes time: it must not become all that this process does.
    this.#pause = Math.min(soon, Math.max(poll, 20 * (performance.now() - started)));
  }

  /** `kept`: content of files that are missing now; if another file has the same object, that one wins. */
  #take(present: readonly FileContent[], kept: readonly FileContent[], reports: readonly FileReport[]): void {
    const taken = [...present, ...kept];
    if (taken.length !== this.#taken?.length || taken.some((content, index) => content !== this.#taken?.[index])) {
      this.#taken = taken;
      this.#merged = mergeContents(present, this.#lines);
      const objects = new Map(this.#merged.objects);
      for (const { objects: all } of kept) for (const o of all) if (!objects.has(o.key)) objects.set(o.key, o);
      this.#objects = objects;
      this.#revisions.apply(objects);
    }
    this.#report([...this.#merged.reports, ...reports]);
  }

  /** Milliseconds until a changed file can be assumed complete; `Infinity` if it can be already. */
  #unsettled(file: FoundFile, old: Tracked | undefined, before: ReadonlyMap<string, number>): number {
    const age = Date.now() - file.modified;
    const since = before.get(file.path) ?? performance.now();
    // A time in the future is meaningless.
    const isSettled = age < 0 || age >= SETTLED || performance.now() - since > PATIENCE;
    if (old?.stamp === file.stamp || isSettled) return Infinity;
    this.#unsettledSince.set(file.path, since);
    return SETTLED - age + 1;
  }

  #read(file: FoundFile, old: Tracked | undefined, again: boolean): Tracked | undefined {
    if (old !== undefined && old.stamp === file.stamp) return old;
    const read = readText(file);
    if (read === undefined) return undefined;
    const reading = { validate: this.#options.validate, lines: this.#lines };
    const content =
      'text' in read
        ? nextContent(old?.content, file.path, read.text, reading)
        : unreadableContent(old?.content, file.path, read.reason);
    const isPassing = 'reason' in read && read.passing === true;
    return { stamp: again || isPassing ? '' : file.stamp, content };
  }

  #report(reports: readonly FileReport[]): void {
    // The usual case: nothing has changed.
    if (reports.length === this.reports.length && reports.every((report, i) => report === this.reports[i])) return;
    const before = new Set(this.reports.map((report) => JSON.stringify(report)));
    const appeared = reports.filter((report) => !before.has(JSON.stringify(report)));
    const same = appeared.length === 0 && reports.length === this.reports.length;
    this.reports = reports;
    if (!same) this.#options.onReports(reports, appeared);
  }
}

function later(old: Tracked | undefined): Tracked | undefined {
  return old && { stamp: '', content: old.content };
}

function lostPaths(listing: Listing): FileReport[] {
  return [...listing.unreadable].map(([file, reason]) => ({
    severity: 'error',
    file,
    field: '',
    message: `cannot be read: ${reason}; its objects stay in force`,
  }));
}

function unwatched(paths: readonly string[]): FileReport {
  return {
    severity: 'warning',
    file: paths.join(', '),
    field: '',
    message: `cannot be watched because inotify watches ran out; changes are polled for every ${UNWATCHED_POLL} ms`,
  };
}
