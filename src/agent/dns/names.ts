/** Addresses of a host: 4 or 16 bytes each, one after the other. */
export interface HostAddresses {
  readonly v4: Uint8Array;
  readonly v6: Uint8Array;
  /** A Kubernetes Service or one of its Pods: it has short forms. */
  readonly isShort: boolean;
}

/** What a name stands for. */
export interface Found extends Pick<HostAddresses, 'v4' | 'v6'> {
  /** The name is another one with a search domain: the answer says so with a CNAME. */
  readonly alias?: string;
}

/** Names that the agent answers itself. */
export interface NameTable {
  /** Whether there is a table: before, nothing can be said about any name. */
  readonly isLoaded: boolean;
  /** @param name in lower case, without a final dot. Undefined: others may know it. */
  lookup(name: string): Found | undefined;
}

/** Where the workload is. */
export interface NameContext {
  readonly namespace: string;
  /** Of the cluster: `cluster.local`. */
  readonly domain: string;
  /** The first one of the search list in resolv.conf, which clients try first; empty: none. */
  readonly search: string;
}

/** A host that has changed, or undefined if it is gone. */
export type HostChange = readonly [host: string, addresses: HostAddresses | undefined];

/** The hosts that the control plane has sent. Other forms of their names are derived when they are looked up. */
export class Names implements NameTable {
  readonly #hosts = new Map<string, HostAddresses>();
  readonly #context: NameContext;
  #isLoaded = false;
  /** `*.example.com`: most tables have none. */
  #wildcards = 0;

  constructor(context: NameContext) {
    this.#context = {
      namespace: context.namespace,
      domain: context.domain.toLowerCase().replace(/\.$/, ''),
      search: context.search.toLowerCase().replace(/\.$/, ''),
    };
  }

  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  get size(): number {
    return this.#hosts.size;
  }

  /** From the first call on, there is a table. */
  apply(changes: Iterable<HostChange>): void {
    this.#isLoaded = true;
    for (const [name, addresses] of changes) {
      const host = name.toLowerCase();
      const isWildcard = host.startsWith('*.');
      if (isWildcard && this.#hosts.has(host)) this.#wildcards--;
      this.#hosts.delete(host);
      if (addresses === undefined) continue;
      this.#hosts.set(host, addresses);
      if (isWildcard) this.#wildcards++;
    }
  }

  lookup(name: string): Found | undefined {
    const own = this.#exact(name);
    if (own !== undefined) return own;
    const { search } = this.#context;
    const alias = search !== '' && name.endsWith(`.${search}`) ? name.slice(0, -search.length - 1) : '';
    const aliased = alias === '' ? undefined : (this.#exact(alias) ?? this.#wildcard(alias));
    return aliased === undefined ? this.#wildcard(name) : { ...aliased, alias };
  }

  /** In the order of the search list of a Pod. */
  #exact(name: string): Found | undefined {
    const host = this.#hosts.get(name);
    if (host !== undefined) return host;
    const { namespace, domain } = this.#context;
    return (
      this.#short(`${name}.${namespace}.svc.${domain}`) ??
      (name.includes('.') ? this.#short(`${name}.svc.${domain}`) : undefined) ??
      (name.endsWith('.svc') ? this.#short(`${name}.${domain}`) : undefined)
    );
  }

  #short(host: string): Found | undefined {
    const found = this.#hosts.get(host);
    return found?.isShort === true ? found : undefined;
  }

  /** The most specific one. */
  #wildcard(name: string): Found | undefined {
    if (this.#wildcards === 0) return undefined;
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const found = this.#hosts.get(`*${name.slice(dot)}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
