import type { Graph } from '../cache/graph.ts';
import type { Members } from './members.ts';
import type { Collection } from '../cache/graph.ts';
import type { Problem } from '../api/problem.ts';
export function declareGateways(
  _graph: Graph,
  _parts: unknown,
): { members: readonly Members[]; problems: readonly Collection<{ problems: readonly Problem[] }>[] } {
  return { members: [], problems: [] };
}
export const gatewayList = (key: string): string => `gateway|${key}`;
