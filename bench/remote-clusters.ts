/**
 * What other clusters cost in the graph, without what reads them: `node --expose-gc bench/remote-clusters.ts [clusters]
 * [services]`. All have the same Services, each with two endpoints of its own.
 */
import { kindOf } from '../src/api/kinds.ts';
import { type KubernetesObject, objectKey } from '../src/api/object.ts';
import { Interner } from '../src/kube/reading/interner.ts';
import { shapeOf } from '../src/kube/reading/trim.ts';
import { TestMesh, connectedProxy } from '../test/harness/mesh.ts';
import { scaleObjects, slice } from './scale-mesh.ts';
import { cpu, heap } from './usage.ts';

const [clusters = 100, services = 1_000] = process.argv.slice(2).map(Number);
const options = { services, namespaces: 20, endpoints: 2, routes: false };
const rounds = 200;
const OWN = 'Kubernetes';

const interner = new Interner();
/** Those of one cluster, as they are read from its API server. */
const objectsOfCluster = (): readonly KubernetesObject[] =>
  scaleObjects(options).map((object) => shapeOf(kindOf(object.apiVersion, object.kind)!, interner).trim({ ...object }));

const proxy = () =>
  connectedProxy('p', {
    id: 'sidecar~10.9.0.1~client.ns-0~ns-0.svc.cluster.local',
    metadata: { NAMESPACE: 'ns-0', ISTIO_VERSION: '1.32.0', INSTANCE_IPS: '10.9.0.1' },
  });

/** All clusters in one commit, as after a start. Milliseconds of CPU. */
function start(): number {
  const mesh = new TestMesh({ oracle: false });
  mesh.connect(proxy());
  const { inputs } = mesh.mesh;
  const ids = [OWN, ...Array.from({ length: clusters }, (_, c) => `c${c}`)];
  const began = cpu();
  mesh.commit(
    ids.flatMap((id) => [
      ...(id === OWN ? [] : [inputs.remoteClusters.write(id, { id })]),
      ...objectsOfCluster().map((object) => {
        const { namespace = '', name } = object.metadata;
        const kind = object.kind === 'Service' ? 'Service' : 'EndpointSlice';
        return inputs.objects[kind].write(objectKey(id, namespace, name), object);
      }),
    ]),
  );
  return cpu() - began;
}

const together = start();
const mesh = new TestMesh({ oracle: false });
mesh.apply(scaleObjects(options));
mesh.connect(proxy());

let shift = 0;
/** Milliseconds of CPU per changed EndpointSlice. */
function changes(source: string): number {
  const begin = cpu();
  for (let round = 0; round < rounds; round++) mesh.apply([slice(round % services, options, 2, ++shift)], source);
  return (cpu() - begin) / rounds;
}

changes(OWN);
const alone = changes(OWN);
const before = heap();
const begin = cpu();
for (let c = 0; c < clusters; c++) {
  const id = `c${c}`;
  mesh.commit([mesh.mesh.inputs.remoteClusters.write(id, { id })]);
  mesh.apply(objectsOfCluster(), id);
}
const read = cpu() - begin;
const bytes = heap() - before;
// In turns: what else the machine does concerns both.
let [local, remote] = [0, 0];
const turns = 4;
for (let turn = 0; turn < turns; turn++) {
  local += changes(OWN) / turns;
  remote += changes('c0') / turns;
}
console.log(
  JSON.stringify({
    clusters,
    services,
    cpuSeconds: { together: Number((together / 1_000).toFixed(1)), oneByOne: Number((read / 1_000).toFixed(1)) },
    bytesPerEndpointGroup: Math.round(bytes / clusters / services),
    changeMs: { alone: alone.toFixed(2), local: local.toFixed(2), remote: remote.toFixed(2) },
    remoteToLocal: Number((remote / local).toFixed(2)),
  }),
);
