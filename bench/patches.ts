import { leavesOf } from '../src/ads/store/resource.ts';
import type { Emit, Graph, Input } from '../src/cache/graph.ts';
import type { PatchFrontEnd } from '../src/mesh/objects/patch-sources.ts';
import type { Patch, PatchSource } from '../src/model/patch.ts';
import { sidecarOf } from '../test/harness/fleet.ts';
import { TestMesh } from '../test/harness/mesh.ts';
import { Executions } from './executions.ts';
import { namespaceOf, scaleObjects } from './scale-mesh.ts';

/**
 * What patches cost the graph, in work instead of time, beside a mesh without any: executed blocks of our code until all
 * sidecars are connected, then when one patch changes; entries of the graph; and distinct encoded bytes.
 *
 *     node bench/patches.ts
 */
const mesh = { services: 1_000, namespaces: 50, endpoints: 5, routes: true };
const PROXIES = 100;

type Choice = Pick<PatchSource, 'namespace' | 'patches'>;

function frontEndOf(graph: Graph): { readonly input: Input<Choice>; readonly frontEnd: PatchFrontEnd } {
  const input = graph.input<Choice>('objects.Patch');
  const sources = graph.derive('patches of Patches', input, (key, choice, _, emit: Emit<PatchSource>) => {
    const ref = { source: '', group: 'networking.istio.io', kind: 'Patch', namespace: choice.namespace, name: key };
    emit(key, { key: `Patch/${key}`, ref, createdAt: '', name: key, priority: 0, ...choice });
  });
  const apply: PatchFrontEnd['apply'] = (_, message, __, patches) => ({
    ...message,
    ...Object.assign({}, ...patches.map(({ payload }) => payload)),
  });
  return { input, frontEnd: { kind: 'Patch', sources, apply, problems: [] } };
}

const patch = (where: Pick<Patch, 'type' | 'direction' | 'host'>, payload: object): Patch => ({
  ...where,
  field: 'spec',
  payload,
});
const HOST = `s-0.${namespaceOf(0, mesh)}.svc.cluster.local`;
const ofCluster = (statName: string, host?: string): Patch =>
  patch({ type: 'cluster', direction: 'outbound', ...(host && { host }) }, { altStatName: statName });
const ofNamespace = (statName: string): Patch[] =>
  Array.from({ length: mesh.services / mesh.namespaces }, (_, i) => {
    const service = i * mesh.namespaces;
    return ofCluster(statName, `s-${service}.${namespaceOf(service, mesh)}.svc.cluster.local`);
  });
const ofListener = (statPrefix: string): Patch => patch({ type: 'listener', direction: 'inbound' }, { statPrefix });

/** With a value that changes. */
const choices: Readonly<Record<string, ((value: string) => Choice) | undefined>> = {
  'no front end': undefined,
  'a namespace patches a cluster': (value) => ({ namespace: 'ns-1', patches: [ofCluster(value, HOST)] }),
  'a namespace patches the clusters of another': (value) => ({ namespace: 'ns-1', patches: ofNamespace(value) }),
  'a namespace patches its inbound listeners': (value) => ({ namespace: 'ns-1', patches: [ofListener(value)] }),
  'a namespace patches all its clusters': (value) => ({ namespace: 'ns-1', patches: [ofCluster(value)] }),
  'everybody patches a cluster': (value) => ({ namespace: '', patches: [ofCluster(value, HOST)] }),
  'everybody patches all clusters': (value) => ({ namespace: '', patches: [ofCluster(value)] }),
  'everybody patches all inbound listeners': (value) => ({ namespace: '', patches: [ofListener(value)] }),
};

const executions = new Executions();
await executions.start();

async function figuresOf(choice: ((value: string) => Choice) | undefined): Promise<Readonly<Record<string, number>>> {
  let input: Input<Choice> | undefined;
  const patches = (graph: Graph): readonly PatchFrontEnd[] => {
    const made = frontEndOf(graph);
    input = made.input;
    return [made.frontEnd];
  };
  const lab = new TestMesh({ oracle: false, ...(choice && { frontEnds: { patches } }) });
  const write = (value: string): void => {
    if (input !== undefined && choice !== undefined) lab.commit([input.write('p', choice(value))]);
  };
  await executions.take();
  lab.apply(scaleObjects(mesh));
  write('first');
  lab.commit(
    Array.from({ length: PROXIES }, (_, i) => {
      const proxy = sidecarOf(`p-${i} 10.9.0.${i}`, namespaceOf(i, mesh), { app: `s-${i}` });
      return lab.mesh.inputs.proxies.write(proxy.stream, proxy);
    }),
  );
  const { graph: work } = await executions.take();
  write('second');
  const { graph: change } = await executions.take();
  const entries = lab.graph.collections.reduce((sum, { size }) => sum + size, 0);
  const leaves = new Set(
    lab.mesh.members.flatMap((members) =>
      [...members.entries()].flatMap(([, { resource }]) => [...leavesOf(resource.body)]),
    ),
  );
  const bytes = [...leaves].reduce((sum, { length }) => sum + length, 0);
  return { work, change, entries, bytes };
}

const [none, ...others] = Object.entries(choices);
// What is compiled and built once is not a cost of the first.
await figuresOf(undefined);
const base = await figuresOf(none![1]);
console.log(`${none![0]}: ${JSON.stringify(base)}`);
for (const [name, choice] of others) {
  const figures = await figuresOf(choice);
  const ratios = ['work', 'entries', 'bytes'].map((what) => `${what} × ${(figures[what]! / base[what]!).toFixed(3)}`);
  console.log(`${name}: ${ratios.join(', ')}; another value: ${figures['change']! - base['change']!} blocks`);
}
