import type { Node } from '../api/core.ts';
import type { ObjectSink } from '../api/source.ts';
import type { Clock } from '../base/clock.ts';
import type { RemoteNode } from './node-value.ts';
import { WatchStore } from './watch-store.ts';

/** The nodes of another cluster, delivered as Nodes: one for each internal address, by which Pods name them. */
export function nodeStore(sink: ObjectSink, clock: Clock): WatchStore<RemoteNode> {
  return new WatchStore<RemoteNode>({
    clock,
    replaced: (values) => sink.replace('Node', [...values.values()].flatMap(nodesOf)),
    changed(now, before) {
      const nodes = now === undefined ? [] : nodesOf(now);
      for (const node of nodes) sink.upsert('Node', node);
      const names = new Set(nodes.map(({ metadata: { name } }) => name));
      for (const { metadata } of before === undefined ? [] : nodesOf(before))
        if (!names.has(metadata.name)) sink.delete('Node', '', metadata.name);
    },
  });
}

/** The name of the node with this address; empty if there is none. It looks through all of them. */
export function nodeAt({ values }: WatchStore<RemoteNode>, address: string): string {
  for (const { name, addresses } of values.values())
    if (addresses.some((each) => each.address === address)) return name;
  return '';
}

const TOPOLOGY = /^(topology\.|failure-domain\.beta\.)/;

function nodesOf({ addresses, labels }: RemoteNode): readonly Node[] {
  const topology = Object.fromEntries(Object.entries(labels).filter(([name]) => TOPOLOGY.test(name)));
  return addresses
    .filter(({ type }) => type === 'InternalIP')
    .map(({ address }) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: address, labels: topology } }));
}
