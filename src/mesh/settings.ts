import type { ConfigMap } from '../api/core.ts';
import { objectKey, parseObjectKey, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../cache/graph.ts';
import type {
  ClusterSettings,
  ListenerSettings,
  MeshConfig,
  RouteSettings,
  SecuritySettings,
  VisibilitySettings,
} from '../model/mesh-config.ts';
import { type MeshConfigProblem, reconcileMeshConfig } from '../reconcilers/mesh-config/mesh-config.ts';
import { MESH_CONFIG } from '../api/mesh-config-names.ts';
import { type Inputs, ONE } from './inputs.ts';

interface ParsedMeshConfig {
  readonly config: MeshConfig;
  readonly problems: readonly Problem[];
}

export interface Settings {
  readonly parsed: Collection<ParsedMeshConfig>;
  readonly visibility: Collection<VisibilitySettings>;
  readonly clusters: Collection<ClusterSettings>;
  readonly routes: Collection<RouteSettings>;
  readonly listeners: Collection<ListenerSettings>;
  readonly security: Collection<SecuritySettings>;
}

/** The mesh config in sections, so that a change to one marks only its readers. */
export function declareSettings(graph: Graph, inputs: Inputs): Settings {
  const parsed = graph.derive('meshConfig', inputs.options, (_, options, read, emit: Emit<ParsedMeshConfig>) => {
    const key = objectKey(options.clusterId, options.rootNamespace, MESH_CONFIG);
    const map = read.get(inputs.objects.ConfigMap, key) as ConfigMap | undefined;
    const reconcile = (from: ConfigMap | undefined) =>
      reconcileMeshConfig(from?.data?.['mesh'], options.rootNamespace, options.domainSuffix);
    if (map === undefined) {
      // Whoever deletes it has seldom meant to change the whole mesh.
      const former = read.get(inputs.lastGood, key);
      emit(ONE, { config: reconcile(former).config, problems: former === undefined ? [] : [deleted(former, key)] });
      return;
    }
    const newest = reconcile(map);
    if (!newest.problems.some(({ reason }) => reason === 'Invalid')) {
      emit(ONE, { config: newest.config, problems: newest.problems.map((problem) => inConfigMap(problem, map, key)) });
      return;
    }
    // A typo must not change the whole mesh.
    const good = read.get(inputs.lastGood, key);
    const message =
      good === undefined
        ? 'Invalid fields have their default values.'
        : 'This version is not used; the last valid one stays in force.';
    const problems = [...newest.problems, { field: '', reason: 'Invalid' as const, message }];
    emit(ONE, {
      config: good === undefined ? newest.config : reconcile(good).config,
      problems: problems.map((problem) => inConfigMap(problem, map, key)),
    });
  });
  // Discovery selectors are read where objects come in.
  const section = <K extends Exclude<keyof MeshConfig, 'discoverySelectors'>>(name: K) =>
    graph.derive(`meshConfig.${name}`, parsed, (key, { config }, _, emit: Emit<MeshConfig[K]>) =>
      emit(key, config[name]),
    );
  return {
    parsed,
    visibility: section('visibility'),
    clusters: section('clusters'),
    routes: section('routes'),
    listeners: section('listeners'),
    security: section('security'),
  };
}

function deleted(former: ConfigMap, key: string): Problem {
  const message =
    'The ConfigMap is deleted; its last valid version stays in force until a replica restarts, which then has the ' +
    'defaults. Create it again; for the defaults, with an empty text.';
  return inConfigMap({ field: '', reason: 'Invalid', message }, former, key);
}

/** The mesh config is the text under one key. */
function inConfigMap({ field, ...problem }: MeshConfigProblem, map: ConfigMap, key: string): Problem {
  return {
    ...problem,
    object: refOf(parseObjectKey(key).source, map),
    field: field === '' ? 'data.mesh' : `data.mesh.${field}`,
  };
}

/** One section; it exists as soon as the options do. */
export function settingOf<T>(read: Reader, section: Collection<T>): T {
  const value = read.get(section, ONE);
  if (value === undefined) throw new Error('the options were not written');
  return value;
}
