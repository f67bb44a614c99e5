import { onTestFinished } from 'vitest';
import type { SourceKindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { FileReport } from '../report.ts';
import { printReport } from './print-report.ts';
import { type DirectorySource, watchDirectory } from '../watch.ts';
import { validate } from './yaml.ts';

/** A directory source with a sink that records, and a way to wait for what it delivers. */
export class Following {
  readonly objects = new Map<string, KubernetesObject>();
  /** Every call, e.g. `upsert VirtualService/shop/a#2`. */
  readonly calls: string[] = [];
  appeared: FileReport[] = [];
  source!: DirectorySource;
  #waiting: (() => void)[] = [];

  static async start(...paths: string[]): Promise<Following> {
    const following = new Following();
    const stop = new AbortController();
    following.source = await watchDirectory({
      paths,
      validate,
      signal: stop.signal,
      onReports: (_, appeared) => {
        following.appeared.push(...appeared);
        following.#changed();
      },
      sink: {
        replace: (kind, objects) => {
          for (const object of objects) following.#put(kind, object);
          following.#called(`replace ${kind} ${objects.length}`);
        },
        upsert: (kind, object) => {
          following.#put(kind, object);
          following.#called(
            `upsert ${kind}/${object.metadata.namespace}/${object.metadata.name}#${object.metadata.generation}`,
          );
        },
        delete: (kind, namespace, name) => {
          following.objects.delete(`${kind}/${namespace}/${name}`);
          following.#called(`delete ${kind}/${namespace}/${name}`);
        },
      },
    });
    following.calls.length = 0;
    onTestFinished(async () => {
      stop.abort();
      await following.source.ended;
    });
    return following;
  }

  /** `name → destination#generation` of every VirtualService. */
  get routes(): Record<string, string> {
    return Object.fromEntries(
      [...this.objects.values()]
        .filter(({ kind }) => kind === 'VirtualService')
        .map((object) => {
          const to = /"destination":\{"host":"([^"]*)"/.exec(JSON.stringify(object))?.[1] ?? '';
          return [object.metadata.name, `${to}#${object.metadata.generation}`];
        }),
    );
  }

  get reports(): string[] {
    return this.source.reports().map(printReport);
  }

  /** Resolves as soon as the condition holds; checked whenever the source calls. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #put(kind: SourceKindName, object: KubernetesObject): void {
    this.objects.set(`${kind}/${object.metadata.namespace ?? ''}/${object.metadata.name}`, object);
  }

  #called(call: string): void {
    this.calls.push(call);
    this.#changed();
  }

  #changed(): void {
    // All calls for one moment come within one turn.
    queueMicrotask(() => this.#waiting.splice(0).forEach((resolve) => resolve()));
  }
}
