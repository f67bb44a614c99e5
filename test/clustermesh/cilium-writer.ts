import type { EtcdConnection } from '../../src/etcd/connection.ts';
import { deleteRange, leaseGrant, put } from '../../src/etcd/messages.ts';
import { leaseRevoke } from '../../src/etcd/testing/messages.ts';
import {
  canaryKey,
  clusterConfigKey,
  HEARTBEAT,
  prefixOf,
  type StoredKind,
  type Tree,
} from '../../src/clustermesh/keys.ts';
import { encodeSlice } from '../../src/clustermesh/slice-encoding.ts';
import type { RemoteSlice } from '../../src/clustermesh/slice-value.ts';

export interface WrittenService {
  readonly namespace: string;
  readonly name: string;
  /** Address -> target port. */
  readonly backends: Readonly<Record<string, number>>;
  readonly shared?: boolean;
}

/** Writes what a cluster's clustermesh-apiserver writes, or its KVStoreMesh, in the form that it has there. */
export class CiliumWriter {
  readonly cluster: string;
  readonly id: number;
  readonly tree: Tree;
  readonly #connection: () => EtcdConnection;
  #lease = 0n;

  constructor(connection: () => EtcdConnection, cluster: string, id: number, tree: Tree = 'state') {
    this.#connection = connection;
    [this.cluster, this.id, this.tree] = [cluster, id, tree];
  }

  /** The same cluster, if it had this id. */
  as(id: number): CiliumWriter {
    return new CiliumWriter(this.#connection, this.cluster, id, this.tree);
  }

  /** Everything hangs on this lease from now on. */
  async lease(): Promise<void> {
    this.#lease = (await this.#connection().call(leaseGrant, { ttl: 900n }, forever)).id;
  }

  /** What hangs on the lease is gone, and more hangs on none. */
  async endLease(): Promise<void> {
    await this.#connection().call(leaseRevoke, { id: this.#lease }, forever);
    this.#lease = 0n;
  }

  /** What is there from the first moment on; canaries come when the rest was written. */
  async begin(capabilities: object = {}): Promise<void> {
    await this.heartbeat();
    await this.config(capabilities);
  }

  async finish(...kinds: readonly StoredKind[]): Promise<void> {
    const all = kinds.length > 0 ? kinds : (['nodes', 'services', 'identities', 'ip'] as const);
    for (const kind of all) await this.write(canaryKey(kind, this.tree, this.cluster), new Date().toISOString());
  }

  heartbeat(): Promise<void> {
    return this.write(HEARTBEAT, new Date().toISOString());
  }

  config(capabilities: object = {}): Promise<void> {
    const usual = { syncedCanaries: true, maxConnectedClusters: 255, ...(this.tree === 'cache' && { cached: true }) };
    const config = { id: this.id, capabilities: { ...usual, ...capabilities } };
    return this.write(clusterConfigKey(this.cluster), JSON.stringify(config));
  }

  service({ namespace, name, backends, shared = true }: WrittenService): Promise<void> {
    const ports = (port: number): object => ({ http: { Protocol: 'TCP', Port: port } });
    const value = {
      ...{ cluster: this.cluster, namespace, name },
      frontends: { '172.20.0.17': ports(80) },
      backends: Object.fromEntries(Object.entries(backends).map(([address, port]) => [address, ports(port)])),
      ...{ labels: {}, selector: { app: name }, includeExternal: shared, shared, clusterID: this.id },
    };
    return this.put('services', `${namespace}/${name}`, JSON.stringify(value));
  }

  slice(slice: RemoteSlice): Promise<void> {
    return this.put(
      'endpointslices',
      `${slice.namespace}/${slice.name}`,
      encodeSlice(slice, { name: this.cluster, id: this.id }),
    );
  }

  node(name: string, address: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    const value = {
      ...{ Name: name, Cluster: this.cluster, IPAddresses: [{ Type: 'InternalIP', IP: address }] },
      ...{ IPv4AllocCIDR: { IP: '10.9.0.0', Mask: '////AA==' }, IPv4SecondaryAllocCIDRs: null, IPv6AllocCIDR: null },
      ...{ IPv6SecondaryAllocCIDRs: null, IPv4HealthIP: '', IPv6HealthIP: '', IPv4IngressIP: '', IPv6IngressIP: '' },
      ...{ ClusterID: this.id, Source: 'custom-resource', EncryptionKey: 0, Labels: labels, Annotations: null },
      ...{ WireguardPubKey: '', BootID: '' },
    };
    return this.put('nodes', name, JSON.stringify(value));
  }

  /** @param number within the cluster's range */
  identity(number: number, labels: Readonly<Record<string, string>>): Promise<void> {
    const all = { ...labels, 'k8s:io.cilium.k8s.policy.cluster': this.cluster };
    const value = Object.entries(all)
      .sort()
      .map(([key, text]) => `${key}=${text};`);
    return this.put('identities', String(this.identityOf(number)), value.join(''));
  }

  identityOf(number: number): number {
    return (this.id << 16) + number;
  }

  pod(address: string, identity: number, namespace: string, name: string): Promise<void> {
    const value = {
      ...{ IP: address, HostIP: '192.168.0.1', ID: this.identityOf(identity), Key: 0, Metadata: '' },
      ...{ K8sNamespace: namespace, K8sPodName: name, K8sServiceAccount: 'default', NamedPorts: null },
    };
    return this.put('ip', address, JSON.stringify(value));
  }

  put(kind: StoredKind, suffix: string, value: string | Buffer): Promise<void> {
    return this.write(prefixOf(kind, this.tree, this.cluster) + suffix, value);
  }

  async write(key: string, value: string | Buffer): Promise<void> {
    await this.#connection().call(put, { key, value: Buffer.from(value), lease: this.#lease }, forever);
  }

  remove(kind: StoredKind, suffix: string): Promise<void> {
    return this.delete(prefixOf(kind, this.tree, this.cluster) + suffix);
  }

  async delete(key: string, rangeEnd?: string): Promise<void> {
    await this.#connection().call(deleteRange, { key, ...(rangeEnd !== undefined && { rangeEnd }) }, forever);
  }
}

const forever = { signal: new AbortController().signal };
