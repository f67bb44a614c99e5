import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { kinds } from '../../src/api/kinds.ts';
import { type KubernetesObject, objectKey } from '../../src/api/object.ts';
import { checked } from '../../src/kube/reading/checked.ts';
import { Interner } from '../../src/kube/reading/interner.ts';
import { shapeOf } from '../../src/kube/reading/trim.ts';
import { remoteKinds } from '../../src/other-clusters/remote-cluster.ts';
import { TestMesh, connectedProxy, readObjects } from '../harness/mesh.ts';
import { createCheckSound } from '../harness/sound.ts';
import { hostileJson } from './hostile.ts';
import { runs } from '../../src/testing/runs.ts';

const checkSound = createCheckSound();

/** Fields that are read of some kind. */
const NAMES = [
  ...['name', 'namespace', 'labels', 'annotations', 'ownerReferences', 'kind', 'controller', 'uid', 'app'],
  ...['creationTimestamp', 'deletionTimestamp', 'generation', 'resourceVersion', 'spec', 'status', 'data', 'mesh'],
  ...['containers', 'initContainers', 'ports', 'containerPort', 'port', 'targetPort', 'protocol', 'restartPolicy'],
  ...['podIP', 'podIPs', 'ip', 'phase', 'conditions', 'type', 'nodeName', 'serviceAccountName', 'hostname'],
  ...['clusterIP', 'clusterIPs', 'selector', 'externalName', 'externalIPs', 'loadBalancer', 'ingress', 'addresses'],
  ...['endpoints', 'addressType', 'targetRef', 'ready', 'zone', 'topology.istio.io/network', 'istio-locality'],
  ...['kubernetes.io/service-name', 'security.istio.io/tlsMode', 'address', 'serviceAccount', 'weight', 'network'],
];

const KINDS = remoteKinds(kinds);

const VALID: Readonly<Record<string, Json>> = Object.fromEntries(
  readObjects(`
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "trustDomain: east.example"}
---
apiVersion: v1
kind: Namespace
metadata: {name: istio-system, labels: {topology.istio.io/network: east}}
---
apiVersion: v1
kind: Node
metadata: {name: n, labels: {topology.kubernetes.io/region: r}}
status: {addresses: [{type: ExternalIP, address: 1.2.3.4}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop, labels: {app: a}, ownerReferences: [{kind: ReplicaSet, name: a-1, controller: true}]}
spec: {nodeName: n, serviceAccountName: a, containers: [{name: c, ports: [{name: http, containerPort: 80}]}]}
status: {phase: Running, podIP: 10.2.0.1, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop, labels: {topology.istio.io/network: east}}
spec: {type: LoadBalancer, clusterIP: 10.9.0.1, selector: {app: a}, ports: [{name: http, port: 80, targetPort: http}]}
status: {loadBalancer: {ingress: [{ip: 1.2.3.5}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a-1, namespace: shop, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints: [{addresses: [10.2.0.1], conditions: {ready: true}, nodeName: n, targetRef: {kind: Pod, name: p, namespace: shop}}]
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: w, namespace: shop, labels: {app: a}}
spec: {address: 10.2.0.2, serviceAccount: a, ports: {http: 81}}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceExport
metadata: {name: a, namespace: shop}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: a, namespace: shop}
spec: {type: ClusterSetIP, ips: [10.9.0.9], ports: [{port: 80, protocol: TCP}]}
`).map((object) => [object.kind, object as unknown as Json]),
);

const OWN = readObjects(`
apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop}
spec: {clusterIP: 10.96.1.1, selector: {app: a}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: shop}
spec: {hosts: [a.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, workloadSelector: {labels: {app: a}}}
`);

interface Mutation {
  /** Which of the values, by their order in the object. */
  readonly at: number;
  readonly value: unknown;
}

/** The object with other values in some places. */
function mutate(object: Json, mutations: readonly Mutation[]): Json {
  const copy = structuredClone(object);
  for (const { at, value } of mutations) {
    const places: (readonly [Json, string])[] = [];
    const visit = (within: unknown): void => {
      if (typeof within !== 'object' || within === null) return;
      for (const [key, member] of Object.entries(within)) {
        places.push([within as Json, key]);
        visit(member);
      }
    };
    visit(copy);
    const place = places[at % places.length];
    if (place !== undefined) place[0][place[1]] = value;
  }
  return copy;
}

test.each(KINDS.map(({ name }) => name))('nothing that another cluster calls a %s makes anything throw', (name) => {
  const kind = kinds.find((each) => each.name === name)!;
  const shape = checked(kind, shapeOf(kind, new Interner()));
  const mutation = fc.record({ at: fc.nat(40), value: hostileJson(NAMES) });
  let taken = 0;
  fc.assert(
    fc.property(fc.array(mutation, { minLength: 1, maxLength: 3 }), (mutations) => {
      const raw = mutate(VALID[name]!, mutations);
      let object: KubernetesObject;
      try {
        object = shape.trim(raw);
      } catch {
        return;
      }
      taken++;
      const mesh = new TestMesh({ oracle: false });
      const { inputs } = mesh.mesh;
      const others = KINDS.flatMap((each) => (each === kind ? [] : [VALID[each.name] as unknown as KubernetesObject]));
      mesh.apply(OWN);
      mesh.commit([inputs.remoteClusters.write('east', { id: 'east' })]);
      mesh.apply(others, 'east');
      const { namespace = '', name: named } = object.metadata;
      mesh.commit([inputs.objects[name].write(objectKey('east', namespace, named), object)]);
      for (const [i, cluster] of ['Kubernetes', 'east'].entries()) {
        const metadata = { CLUSTER_ID: cluster, ISTIO_VERSION: '1.30.0', NETWORK: cluster };
        const id = `sidecar~10.2.0.${i + 1}~p.shop~shop.svc.cluster.local`;
        mesh.connect(connectedProxy(`proxy-${i}`, { id, metadata }));
        expect(checkSound(mesh.snapshot(`proxy-${i}`))).toEqual([]);
      }
    }),
    { numRuns: runs(150) },
  );
  expect(taken).toBeGreaterThan(0);
});
