import { isDeepStrictEqual } from 'node:util';
import type { EndpointSlice, Pod } from '../api/core.ts';
import type { ObjectSink } from '../api/source.ts';
import type { PeerIdentity } from './peer-identities.ts';

type Labels = Readonly<Record<string, string>>;

export interface BackendPodsOptions {
  /** Takes `Pod`. */
  readonly sink: ObjectSink;
  /** Who has an address. */
  readonly identityAt: (address: string) => PeerIdentity | undefined;
}

/**
 * The Pods behind the back ends of another cluster, as far as its addresses and identities say: labels, account and node.
 * Of all other Pods there, nothing is delivered. Nodes are named by their addresses.
 */
export class BackendPods {
  readonly #options: BackendPodsOptions;
  /** How many endpoints have an address. */
  readonly #uses = new Map<string, number>();
  /** Which Pod has an address, by `namespace/name`, and the reverse. */
  readonly #podAt = new Map<string, string>();
  readonly #addresses = new Map<string, Set<string>>();
  /** Pods with an identity. */
  readonly #pods = new Map<number, Set<string>>();
  readonly #delivered = new Map<string, { readonly pod: Pod; readonly identity: number }>();
  /** Equal labels are kept once. */
  #labels = new WeakMap<Labels, Labels>();

  constructor(options: BackendPodsOptions) {
    this.#options = options;
  }

  /** These are the back ends. */
  replaceBackends(slices: readonly EndpointSlice[]): void {
    this.#uses.clear();
    for (const slice of slices) this.#count(slice, 1);
    this.replaceAll();
  }

  /** Some back ends have changed. */
  changeBackends(before: readonly EndpointSlice[], now: readonly EndpointSlice[]): void {
    for (const slice of now) this.#count(slice, 1);
    for (const slice of before) this.#count(slice, -1);
    this.#refresh([...now, ...before].flatMap(addressesOf));
  }

  /** Something else is known of an address. */
  changeAddress(address: string): void {
    this.#refresh([address]);
  }

  /** The labels of an identity have changed. */
  changeIdentity(id: number): void {
    for (const key of [...(this.#pods.get(id) ?? [])]) this.#deliver(key);
  }

  /** Anything may have changed. */
  replaceAll(): void {
    for (const map of [this.#podAt, this.#addresses, this.#pods, this.#delivered]) map.clear();
    for (const address of this.#uses.keys()) this.#place(address);
    for (const key of this.#addresses.keys()) this.#build(key);
    this.#options.sink.replace(
      'Pod',
      Array.from(this.#delivered.values(), ({ pod }) => pod),
    );
  }

  #count(slice: EndpointSlice, by: number): void {
    for (const address of addressesOf(slice)) {
      const uses = (this.#uses.get(address) ?? 0) + by;
      if (uses === 0) this.#uses.delete(address);
      else this.#uses.set(address, uses);
    }
  }

  #refresh(addresses: readonly string[]): void {
    const touched = new Set(addresses.flatMap((address) => this.#place(address)));
    for (const key of touched) this.#deliver(key);
  }

  /** Puts the address where it belongs. Returns the Pods that this concerns. */
  #place(address: string): readonly string[] {
    const before = this.#podAt.get(address);
    const now = this.#uses.has(address) ? keyOf(this.#options.identityAt(address)) : undefined;
    if (before !== now) {
      if (before !== undefined) removeFrom(this.#addresses, before, address);
      if (now !== undefined) addTo(this.#addresses, now, address);
    }
    if (now === undefined) this.#podAt.delete(address);
    else this.#podAt.set(address, now);
    return [before, now].filter((key) => key !== undefined);
  }

  #deliver(key: string): void {
    const before = this.#delivered.get(key)?.pod;
    const now = this.#build(key);
    if (now !== undefined && !isDeepStrictEqual(now, before)) this.#options.sink.upsert('Pod', now);
    if (now !== undefined || before === undefined) return;
    this.#options.sink.delete('Pod', before.metadata.namespace ?? '', before.metadata.name);
  }

  #build(key: string): Pod | undefined {
    const former = this.#delivered.get(key);
    if (former !== undefined) removeFrom(this.#pods, former.identity, key);
    const addresses = [...(this.#addresses.get(key) ?? [])].sort();
    const [first] = addresses;
    const peer = first === undefined ? undefined : this.#options.identityAt(first);
    if (peer === undefined) {
      this.#delivered.delete(key);
      return undefined;
    }
    const pod = podOf(peer, this.#labelsOf(peer.labels), addresses);
    this.#delivered.set(key, { pod, identity: peer.id });
    addTo(this.#pods, peer.id, key);
    return pod;
  }

  #labelsOf(labels: Labels = NONE): Labels {
    const known = this.#labels.get(labels) ?? podLabels(labels);
    this.#labels.set(labels, known);
    return known;
  }
}

const NONE: Labels = {};

const SOURCE = 'k8s:';
/** Of the Pod's namespace, account and cluster; nobody can give a Pod labels with these names. */
const ABOUT_THE_POD = /^(io\.cilium\.k8s\.|io\.kubernetes\.pod\.namespace$)/;

/** The labels of the Pod itself, as far as Cilium takes them into its identities. */
function podLabels(labels: Labels): Labels {
  return Object.fromEntries(
    Object.entries(labels)
      .filter(([name]) => name.startsWith(SOURCE))
      .map(([name, value]) => [name.slice(SOURCE.length), value] as const)
      .filter(([name]) => !ABOUT_THE_POD.test(name)),
  );
}

const READY = [{ type: 'Ready', status: 'True' }] as const;

function podOf(peer: PeerIdentity, labels: Labels, addresses: readonly string[]): Pod {
  const { namespace, pod: name, serviceAccount: account, host } = peer;
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name, labels } },
    spec: { ...(account !== '' && { serviceAccountName: account }), ...(host !== '' && { nodeName: host }) },
    status: { phase: 'Running', podIPs: addresses.map((ip) => ({ ip })), conditions: READY },
  };
}

function keyOf(peer: PeerIdentity | undefined): string | undefined {
  if (peer === undefined || peer.namespace === '' || peer.pod === '') return undefined;
  return `${peer.namespace}/${peer.pod}`;
}

function addressesOf({ endpoints }: EndpointSlice): readonly string[] {
  return (endpoints ?? []).flatMap(({ addresses }) => addresses);
}

function addTo<K, V>(groups: Map<K, Set<V>>, key: K, value: V): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, new Set([value]));
  else group.add(value);
}

function removeFrom<K, V>(groups: Map<K, Set<V>>, key: K, value: V): void {
  const group = groups.get(key);
  if (group?.delete(value) === true && group.size === 0) groups.delete(key);
}
