import type { KubernetesObject } from '../../api/object.ts';

interface Sink {
  replace(objects: readonly KubernetesObject[]): void;
  upsert(object: KubernetesObject): void;
  delete(object: KubernetesObject): void;
}

/**
 * Objects of one kind that are read by their names, each by a watch of its own since rights to them may be by name. The
 * sink sees them as one collection, whose first list comes once all are known: which of them counts may depend on all.
 */
export class JoinedObjects {
  private readonly names: readonly string[];
  private readonly sink: Sink;
  private readonly known = new Map<string, KubernetesObject | undefined>();

  constructor(names: readonly string[], sink: Sink) {
    this.names = names;
    this.sink = sink;
  }

  /** What the reader of this name delivers to. */
  of(name: string): Sink {
    return {
      replace: ([object]) => {
        this.known.set(name, object);
        if (this.isComplete) this.sink.replace([...this.known.values()].filter((each) => each !== undefined));
      },
      upsert: (object) => {
        this.known.set(name, object);
        if (this.isComplete) this.sink.upsert(object);
      },
      delete: (object) => {
        this.known.set(name, undefined);
        if (this.isComplete) this.sink.delete(object);
      },
    };
  }

  /** It cannot be read, and nobody is to wait for it. */
  forbidden(name: string): void {
    if (!this.known.has(name)) this.of(name).replace([]);
  }

  private get isComplete(): boolean {
    return this.names.every((name) => this.known.has(name));
  }
}
