import { bytesOf } from '../ads/wire/bytes-of.ts';
import { type EncodedResource, type LeafPart, leavesOf } from '../ads/store/resource.ts';
import { printRef } from '../api/object.ts';
import type { ExplainedResource, ExplainedVirtualHost } from '../cli/program.ts';
import type { Locate } from '../directory/load.ts';
import { types } from '../envoy/encode/proto-types.ts';
import { type Protos, typeUrl } from '../envoy/encode/proto.ts';
import type { Trace } from '../envoy/encode/trace.ts';
import type { Source } from '../model/provenance.ts';

export interface ExplainContext {
  readonly trace: Trace;
  readonly protos: Protos;
  readonly locate: Locate;
}

/** The objects behind a resource, with file and line if known; of a route table, behind each virtual host and route. */
export function explain(resource: EncodedResource, context: ExplainContext): ExplainedResource {
  const { name, body } = resource;
  const leaves = [...leavesOf(body)];
  if (resource.typeUrl !== typeUrl(types.route))
    return {
      name,
      from: printSources(
        leaves.flatMap((leaf) => context.trace.of(leaf)),
        context,
      ),
    };
  return { name, virtualHosts: leaves.flatMap((leaf) => explainVirtualHosts(leaf, context)) };
}

/** A leaf of a table is a table with one virtual host, or none. */
function explainVirtualHosts(leaf: LeafPart, context: ExplainContext): readonly ExplainedVirtualHost[] {
  const { virtualHosts = [] } = context.protos.toJson(types.route, bytesOf(leaf)) as {
    virtualHosts?: { name: string; routes?: { name?: string; match?: object }[] }[];
  };
  const sources = context.trace.routesOf(leaf);
  return virtualHosts.map(({ name, routes = [] }) => ({
    name,
    from: printSources(context.trace.of(leaf), context),
    routes: routes.map((route, i) => ({
      ...(route.name !== undefined && { name: route.name }),
      match: route.match ?? {},
      from: printSources(sources[i] ?? [], context),
    })),
  }));
}

/** `mesh.yaml:12: VirtualService/shop/reviews: spec.http[0]`, each once. */
function printSources(sources: readonly Source[], { locate }: Pick<ExplainContext, 'locate'>): readonly string[] {
  return [...new Set(sources.map((source) => printSource(source, locate)))];
}

export function printSource({ object, field }: Source, locate: Locate): string {
  const place = locate(object, field);
  return [...(place ? [`${place.file}:${place.line}`] : []), printRef(object), ...(field ? [field] : [])].join(': ');
}
