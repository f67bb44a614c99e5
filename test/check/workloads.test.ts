import { describe, expect, test } from 'vitest';
import { check, checked, deployment, gateway, places, pod, service, serviceEntry, sidecar } from './checked.ts';

const namespace = (labels: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: ${labels}}`;
const made = (kind: string, spec: string, name = 'web') =>
  `apiVersion: apps/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}`;
const template = (labels = '{app: web}', spec = '{containers: [{name: app, image: app}]}') =>
  `{template: {metadata: {labels: ${labels}}, spec: ${spec}}}`;
const selecting = (labels: string) =>
  sidecar('shop/s', `{workloadSelector: {labels: ${labels}}, egress: [{hosts: ["./*"]}]}`);
const idle = ['warning Sidecar/shop/s spec.workloadSelector'];

describe('templates count as Pods', () => {
  test.each([
    ['Deployment', template()],
    ['StatefulSet', template()],
    ['DaemonSet', template()],
    ['Job', template()],
    ['CronJob', `{jobTemplate: {spec: ${template()}}}`],
  ])('of a %s', (kind, spec) => {
    expect(places([made(kind, spec), selecting('{app: web}')])).toEqual([]);
    expect(places([made(kind, spec), selecting('{app: wbe}')])).toEqual(idle);
  });

  test('of what is in the files, not of what it has made, and not of objects without one', () => {
    expect(places([selecting('{app: web}')])).toEqual([]);
    expect(places([made('Deployment', '{}'), selecting('{app: web}')])).toEqual(idle);
    expect(places([made('Deployment', '7'), made('CronJob', '{jobTemplate: []}', 'b')])).toEqual([]);
    expect(places([made('Deployment', '{template: {metadata: {labels: [a]}, spec: {containers: {a: 1}}}}')])).toEqual(
      [],
    );
    const owned = made('ReplicaSet', template()).replace('}', ', ownerReferences: [{kind: Deployment, name: web}]}');
    expect(places([owned, pod('shop/p', '{app: other}'), selecting('{app: web}')])).toEqual(idle);
  });

  test.each([
    '{containers: [null, 7, [], {name: 7, ports: [null, 7, {containerPort: x}], securityContext: 7, args: router}]}',
    '{containers: {a: 1}, initContainers: x, securityContext: [], os: 7, hostNetwork: 7, serviceAccountName: []}',
    '[]',
    'null',
    '7',
  ])('whatever they are: %s', (spec) => {
    const odd = `{template: {metadata: {labels: {app: web, a: 7}, annotations: [7]}, spec: ${spec}}}`;
    const front = service('shop/s', '{selector: {app: web}, ports: [{name: http, port: 80, targetPort: x}]}');
    expect(places([made('Deployment', odd), front, namespace('{istio-injection: enabled}')])).toEqual([]);
    expect(places([made('Deployment', `{template: ${spec}}`), made('CronJob', `{jobTemplate: ${spec}}`, 'c')])).toEqual(
      [],
    );
  });

  test('and as objects that were checked', () => {
    const { objects, ignored } = check([made('Deployment', template()), made('Widget', '{}'), namespace('{}')]);
    expect({ objects, ignored }).toEqual({ objects: 2, ignored: 1 });
  });

  test('with their named ports', () => {
    const named = '{containers: [{name: app, image: app, ports: [{name: web, containerPort: 8080}]}]}';
    const port = (name: string, target: string) =>
      service(`shop/${name}`, `{selector: {app: web}, ports: [{name: ${name}, port: 80, targetPort: ${target}}]}`);
    const both = [port('http', 'web'), port('tcp', '8080')];
    expect(places([made('Deployment', template('{app: web}', named)), ...both])).toEqual([
      'warning Service/shop/tcp spec.ports[0]',
    ]);
    expect(places([made('Deployment', template()), ...both])).toEqual([]);
  });
});

describe('a Gateway that selects nobody', () => {
  const servers = 'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]';
  const of = (selector: string) => gateway('edge/g', `{selector: ${selector}, ${servers}}`);
  const told = ['warning Gateway/edge/g spec.selector'];
  const app = made('Deployment', template());
  const router = (more: string) =>
    `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: gw, namespace: edge}\nspec: {template: {metadata: {labels: {app: gw}${more}}}`;

  test('is told where the files have routers', () => {
    expect(places([of('{app: gate}'), gateway('edge/h', `{selector: {app: web}, ${servers}}`), app])).toEqual([
      ...told,
    ]);
    const injected = router(', annotations: {inject.istio.io/templates: gateway}}, spec: {containers: []}');
    expect(places([of('{app: gate}'), injected])).toEqual(told);
    const own = router('}, spec: {containers: [{name: istio-proxy, image: p, args: [proxy, router]}]}');
    expect(places([of('{app: gate}'), own])).toEqual(told);
    expect(places([of('{istio: ingres}'), pod('edge/p', '{istio: ingress}')])).toEqual(told);
    expect(places([of('{istio: ingres}')], { complete: true })).toEqual(['error Gateway/edge/g spec.selector']);
  });

  test('is not told where they have only applications, nor of a Gateway for all routers, nor beside their Service', () => {
    expect(places([of('{istio: ingressgateway}'), app])).toEqual([]);
    const istiod = deployment('istio-system/istiod', '{app: istiod, istio: pilot}');
    expect(places([of('{istio: ingressgateway}'), istiod])).toEqual([]);
    expect(places([of('{app: gateway}'), app])).toEqual([]);
    expect(places([of('{}'), pod('edge/p', '{istio: ingress}')])).toEqual([]);
    const front = service('edge/f', '{selector: {istio: ingress}, ports: [{name: http, port: 80}]}');
    expect(places([of('{istio: ingress}'), front, app])).toEqual([]);
  });
});

test('a router that is assumed has no address that an endpoint has', () => {
  const local = serviceEntry(
    'shop/e',
    '{hosts: [x.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 9000, name: grpc, protocol: GRPC}], endpoints: [{address: 127.0.0.1}]}',
  );
  const edge = gateway(
    'shop/g',
    '{selector: {istio: ingress}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}',
  );
  expect(checked([local, edge])).toEqual([]);
  expect(checked([local, edge, pod('shop/p', '{istio: ingress}')])).toEqual([]);
});

describe('labels for injection', () => {
  const unlabelled = namespace('{}');
  const told = ['warning Namespace/shop metadata.labels'];

  test('are not missed for what gets no sidecar anyway, or asks for one itself', () => {
    expect(places([unlabelled, made('Deployment', template())])).toEqual(told);
    expect(places([unlabelled])).toEqual([]);
    for (const own of ['true', 'false'])
      expect(places([unlabelled, made('Deployment', template(`{sidecar.istio.io/inject: "${own}"}`))])).toEqual([]);
    const onNode = '{hostNetwork: true, containers: [{name: a, image: a}]}';
    expect(places([unlabelled, made('DaemonSet', template('{app: a}', onNode))])).toEqual([]);
    expect(places([unlabelled, made('Job', template())])).toEqual([]);
    const root = `apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}`;
    expect(places([root, made('Deployment', template()).replace('shop', 'istio-system')])).toEqual([]);
  });

  test('of a Namespace that is not in the files are not known, unless the files are complete', () => {
    const auto = made('Deployment', template('{app: gw}', '{containers: [{name: istio-proxy, image: auto}]}'));
    const image = 'error Deployment/shop/web spec.template.spec.containers[0].image';
    expect(places([auto])).toEqual([]);
    expect(places([auto], { complete: true })).toEqual([image]);
    expect(places([namespace('{istio.io/rev: any}'), auto])).toEqual([]);
  });

  test('that opt out leave the user of the proxy to others', () => {
    const spec = '{containers: [{name: a, image: a, securityContext: {runAsUser: 1337}}]}';
    const user = ['warning Deployment/shop/web spec.template.spec.containers[0].securityContext.runAsUser'];
    expect(places([made('Deployment', template('{app: a}', spec))])).toEqual(user);
    expect(places([made('Deployment', template('{sidecar.istio.io/inject: "false"}', spec))])).toEqual([]);
  });

  test('one running Pod without a proxy stands for its replicas; one that is still to be created has none', () => {
    const enabled = namespace('{istio-injection: enabled}');
    const replica = (i: number) =>
      pod(
        `shop/web-${i}`,
        '{app: web, pod-template-hash: x}',
        undefined,
        ', ownerReferences: [{kind: ReplicaSet, name: web}]',
      );
    expect(places([enabled, replica(1), replica(2)])).toEqual(['warning Pod/shop/web-1 spec.containers']);
    const [unborn] = replica(1).split('\nstatus:');
    expect(places([enabled, unborn!])).toEqual([]);
  });
});

describe('the configuration of injection, if it is in the files', () => {
  const config = (settings: string, name = 'fairlead') =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}-injection, namespace: istio-system}\ndata: {sidecar.yaml: "spec: {}", config.yaml: 'proxy: {image: "hub/proxy:2", discoveryAddress: "a:15012"}${settings}'}`;
  const running = (image: string, more = '') =>
    pod('shop/web-1', '{app: web}', `[{name: istio-proxy, image: "${image}"}]`, more);
  const enabled = namespace('{istio-injection: enabled}');
  const old = ['warning Pod/shop/web-1 spec.containers[0].image'];

  test('says which namespaces need a label', () => {
    const web = made('Deployment', template());
    const unlabelled = ['warning Namespace/shop metadata.labels'];
    expect(places([namespace('{}'), web, config('')])).toEqual(unlabelled);
    expect(places([namespace('{}'), web, config('\n\nenableNamespacesByDefault: true')])).toEqual([]);
  });

  test('says which image new Pods get', () => {
    expect(checked([enabled, running('hub/proxy:1'), config('')])).toEqual([
      `${old[0]}: is "hub/proxy:1", and injection gives Pods "hub/proxy:2". Create the Pod again (kubectl rollout restart) for the proxy that new Pods get.`,
    ]);
    expect(places([enabled, running('hub/proxy@sha256:0'), config('')])).toEqual(old);
    for (const image of ['hub/proxy:2', 'hub/proxy:2-distroless', 'own/proxy:1'])
      expect(places([enabled, running(image), config('')])).toEqual([]);
    expect(
      places([
        enabled,
        running('hub/proxy:1', ', annotations: {sidecar.istio.io/proxyImage: "hub/proxy:1"}'),
        config(''),
      ]),
    ).toEqual([]);
  });

  test('says nothing about Pods of another control plane, or beside another one, or if it cannot be read', () => {
    expect(places([namespace('{istio.io/rev: canary}'), running('hub/proxy:1'), config('')])).toEqual([]);
    expect(places([running('hub/proxy:1'), config('')])).toEqual([]);
    expect(places([enabled, running('hub/proxy:1'), config(''), config('', 'canary')])).toEqual([]);
    expect(places([enabled, running('hub/proxy:1'), config('\n\nunknown: 1')])).toEqual([]);
    expect(places([enabled, running('hub/proxy:1')])).toEqual([]);
  });
});

describe('annotations', () => {
  const of = (annotations: string) =>
    made(
      'Deployment',
      `{template: {metadata: {labels: {app: web}, annotations: ${annotations}}, spec: {containers: []}}}`,
    );

  test('of other programs, or set by one, are not looked at', () => {
    expect(
      places([
        of('{example.com/a: b, istio.io/rev: x, sidecar.istio.io/status: "{}", ambient.istio.io/redirection: enabled}'),
        service('shop/s', '{ports: [{name: http, port: 80}]}', ', annotations: {kubernetes.io/ingress.class: x}'),
      ]),
    ).toEqual([]);
  });

  test('that something fills in later are not read', () => {
    const later = ['"{{ .Values.ports }}"', '"${PORTS}"', '"$(ports)"', 'PORTS_PLACEHOLDER'];
    for (const value of later)
      expect(places([of(`{traffic.sidecar.istio.io/excludeInboundPorts: ${value}}`)])).toEqual([]);
  });

  test.each([
    ['readiness.status.sidecar.istio.io/applicationPorts: ""', 'give the containers a readinessProbe'],
    [
      'sidecar.istio.io/statsHistogramBins: "50"',
      'set bins of histogram_bucket_settings in a ConfigMap named by sidecar.istio.io/bootstrapOverride',
    ],
  ])('%s, which Istio has, is not supported', (annotation, instead) => {
    const name = annotation.slice(0, annotation.indexOf(':'));
    expect(checked([of(`{${annotation}}`)])).toEqual([
      `warning Deployment/shop/web spec.template.metadata.annotations["${name}"]: has no effect; it is not supported: ${instead}.`,
    ]);
  });

  test('a name that is nearly right is given, and a label is called one', () => {
    const place = (name: string) => `warning Deployment/shop/web spec.template.metadata.annotations["${name}"]`;
    expect(checked([of('{traffic.sidecar.istio.io/excludeInboundPort: "80"}')])).toEqual([
      `${place('traffic.sidecar.istio.io/excludeInboundPort')}: has no effect: there is no annotation of this name. Did you mean traffic.sidecar.istio.io/excludeInboundPorts?`,
    ]);
    expect(checked([of('{security.istio.io/tlsMode: istio}')])).toEqual([
      `${place('security.istio.io/tlsMode')}: has no effect: it is a label, not an annotation. Move it to the labels.`,
    ]);
  });
});

test('a port whose protocol is not known is told which part names none', () => {
  const of = (port: string) => checked([service('shop/s', `{selector: {app: web}, ports: [${port}]}`)]);
  const unknown =
    'what a connection carries is found out from what its client sends first, and a server that speaks first is kept waiting.';
  const told = (subject: string, advice: string) => [
    `warning Service/shop/s spec.ports[0]: ${subject}: ${unknown} ${advice}`,
  ];
  expect(of('{port: 80}')).toEqual(
    told(
      'has neither a name that begins with a protocol, nor appProtocol',
      'Set appProtocol, or begin the name with a protocol: http, grpc, tcp.',
    ),
  );
  expect(of('{port: 80, name: web}')).toEqual(
    told(
      'is called "web", which names no protocol',
      'Set appProtocol, or begin the name with a protocol: http-web, grpc-web, tcp-web.',
    ),
  );
  // The name does not count beside it.
  for (const port of ['{port: 80, appProtocol: amqp}', '{port: 80, name: http-web, appProtocol: amqp}'])
    expect(of(port)).toEqual(
      told('has the appProtocol "amqp", which is not known', 'Change appProtocol to one that is: http, grpc, tcp.'),
    );
});
