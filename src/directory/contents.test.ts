import { describe, expect, test } from 'vitest';
import { type FileContent, mergeContents, nextContent } from './contents.ts';
import { parseTree } from '../yaml/tree.ts';
import { Lines } from './lines.ts';
import { printReport } from './testing/print-report.ts';
import { validate, virtualService } from './testing/yaml.ts';

const lines = new Lines();
const read = (text: string, previous?: FileContent, file = 'a.yaml'): FileContent =>
  nextContent(previous, file, text, { validate, lines });
const destinations = (content: FileContent): Record<string, string> =>
  Object.fromEntries(
    content.objects.map(({ name, object }) => [
      name,
      /"destination":\{"host":"([^"]*)"/.exec(JSON.stringify(object))?.[1] ?? '',
    ]),
  );
const reports = (...contents: FileContent[]): string[] => mergeContents(contents, lines).reports.map(printReport);

const two = `${virtualService('a', 'a1')}---\n${virtualService('b', 'b1')}`;

describe('what is wrong takes nothing valid away', () => {
  test('an object that fails its schema stays as it was, and its neighbours change', () => {
    const content = read(
      `${virtualService('a', 'a2').replace('- a\n', '- 7\n')}---\n${virtualService('b', 'b2')}`,
      read(two),
    );
    expect(destinations(content)).toEqual({ a: 'a1', b: 'b2' });
    expect(reports(content)).toEqual([
      'a.yaml:8: VirtualService/shop/a: spec.hosts[0]: must be a string; put it in quotes',
    ]);
  });

  test('a broken document keeps what the file had and does not mention', () => {
    const content = read(`kind: [\n---\n${virtualService('b', 'b2')}`, read(two));
    expect(destinations(content)).toEqual({ b: 'b2', a: 'a1' });
    expect(reports(content)).toEqual([
      expect.stringMatching(/^a.yaml:1: is not valid YAML: /),
      'a.yaml: VirtualService/shop/a: is no longer in the file, but stays in force while the file has errors',
    ]);
  });

  test('a file that is cut off anywhere loses nothing, unless the rest is valid', () => {
    const valid = Array.from(two, (_, length) => read(two.slice(0, length), read(two))).filter((content) => {
      const { reports } = content;
      if (reports.length > 0) expect(Object.keys(destinations(content)).sort()).toEqual(['a', 'b']);
      return reports.length === 0;
    });
    // Within `http` of either object and between the two.
    expect(valid.length).toBeLessThan(two.length / 3);
  });

  test('an empty file keeps its objects and says so; a file of comments deletes them', () => {
    const empty = read('\n', read(two));
    expect(destinations(empty)).toEqual({ a: 'a1', b: 'b1' });
    expect(reports(empty)).toEqual([
      'a.yaml: is empty; its objects stay in force until it has content again or is deleted',
    ]);
    expect(destinations(read('# nothing\n', empty))).toEqual({});
    expect(destinations(read('---\n---\n', read(two)))).toEqual({});
  });

  test('what was broken for some time and is mended is as if it had never been', () => {
    const mended = read(virtualService('b', 'b3'), read('{', read(two)));
    expect(destinations(mended)).toEqual({ b: 'b3' });
    expect(mended.reports).toEqual([]);
  });

  test('a policy that is broken from the start is there, and gives way to the mended one', () => {
    const policy = (action: string): string =>
      [
        'apiVersion: security.istio.io/v1',
        'kind: AuthorizationPolicy',
        'metadata: {name: a}',
        `spec: {action: ${action}}`,
        '',
      ].join('\n');
    const actions = ({ objects }: FileContent) =>
      objects.map(({ object }) => (object as unknown as { readonly spec: { readonly action: string } }).spec.action);
    const broken = read(policy('DENNY'));
    expect(actions(broken)).toEqual(['DENNY']);
    expect(reports(broken)).toEqual([expect.stringContaining('spec.action: must be one of')]);
    const mended = read(policy('DENY'), broken);
    expect(actions(mended)).toEqual(['DENY']);
    // The last good version is better than one that cannot be read.
    expect(actions(read(policy('DENNY'), mended))).toEqual(['DENY']);
  });

  test('an object that is broken from the start is not there, and the others are', () => {
    const content = read(
      `${virtualService('a', 'a1').replace('name: a', 'name: A_1')}---\n${virtualService('b', 'b1')}`,
    );
    expect(destinations(content)).toEqual({ b: 'b1' });
    expect(reports(content)).toEqual([
      'a.yaml:4: metadata.name: "A_1" is not a valid name for a VirtualService; use lower-case letters, digits, dots and dashes',
    ]);
  });
});

describe('what stands in several places', () => {
  test('is taken from the first file, and the other is told where that is', () => {
    const first = read(two, undefined, 'a.yaml');
    const second = read(`# b\n${virtualService('b', 'other')}`, undefined, 'b.yaml');
    expect(reports(first, second)).toEqual([
      'b.yaml:2: VirtualService/shop/b: is already defined in a.yaml:14, which is used; remove one of them',
    ]);
    expect(
      mergeContents([first, second], lines).objects.get('networking.istio.io/VirtualService/shop/b')?.document.file,
    ).toBe('a.yaml');
  });
});

describe('what files look like', () => {
  test('a BOM, carriage returns, empty documents and comments change nothing', () => {
    const plain = read(two);
    const odd = read(`\ufeff# c\n---\n${two.replace('---', '---\n---\n# x\n--- # y')}...\n`.replaceAll('\n', '\r\n'));
    expect(odd.reports).toEqual([]);
    expect(odd.objects.map(({ object }) => object)).toEqual(plain.objects.map(({ object }) => object));
  });

  test('lists are the objects in them, also nested and without kinds of their own', () => {
    const item = { metadata: { name: 'a' }, spec: { ports: [{ port: 80 }] } };
    const services = { apiVersion: 'v1', kind: 'ServiceList', items: [item] };
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'a-1', creationTimestamp: null, managedFields: [{}], uid: 'x', generation: 7 },
      addressType: 'IPv4',
      endpoints: null,
    };
    const content = read(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [services, slice] }));
    expect(content.reports).toEqual([]);
    expect(content.objects.map(({ object }) => object)).toEqual([
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'a', namespace: 'default' },
        spec: { ports: [{ port: 80 }] },
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'a-1', namespace: 'default' },
        addressType: 'IPv4',
      },
    ]);
  });

  test('an error in a list names the item and its line', () => {
    const text = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: a, labels: {version: 1}}
  spec:
    ports:
    - port: 80
    - {name: web, port: 80000}
- apiVersion: v1
  kind: Service
  metadata: {}
- 7
`;
    expect(reports(read(text))).toEqual([
      'a.yaml:13: items[1].metadata.name: is missing',
      'a.yaml:11: items[1].spec: is missing',
      'a.yaml:14: items[2]: is not a Kubernetes object; it needs apiVersion, kind and metadata',
      'a.yaml:6: Service/default/a: metadata.labels.version: must be a string; put it in quotes',
      'a.yaml:10: Service/default/a: spec.ports[1].port: must be a whole number from 1 to 65535',
    ]);
  });

  test('the versions of one kind are one kind', () => {
    const content = read(virtualService('a', 'x').replace('io/v1', 'io/v1alpha3'));
    expect(content.objects[0]?.object?.apiVersion).toBe('networking.istio.io/v1');
  });

  const kindsOf = (...ids: string[]): FileContent =>
    read(
      ids
        .map((id) => id.split(' '))
        .map(([apiVersion, kind]) => `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x}\n`)
        .join('---\n'),
    );

  test('kinds of others are ignored', () => {
    const others = ['apps/v1 Deployment', 'v1 LimitRange', 'v1 ServiceAccount', 'policy/v1 PodDisruptionBudget'];
    const more = ['networking.k8s.io/v1 NetworkPolicy', 'networking.gke.io/v1 ManagedCertificate', 'a/b/c D'];
    const content = kindsOf(...others, ...more, `${'x'.repeat(10_000)}/v1 A`);
    expect(content).toMatchObject({ ignored: 8, reports: [] });
  });

  test.each([
    [
      'telemetry.istio.io/v1alpha1 Telemetry',
      'kind: Fairlead does not read Telemetry: access logs, metrics and traces stay as the mesh config sets them',
    ],
    ['networking.istio.io/v1alpha3 EnvoyFilter', 'EnvoyFilter: it patches nothing'],
    ['networking.istio.io/v1beta1 WorkloadGroup', 'WorkloadGroup: no WorkloadEntry'],
    ['networking.istio.io/v1 WorkloadGroup', 'WorkloadGroup: no WorkloadEntry is created from it'],
    ['extensions.istio.io/v1alpha1 WasmPlugin', 'WasmPlugin: the plugin does not run'],
    ['gateway.networking.k8s.io/v1 HTTPRoute', 'HTTPRoute: it routes no HTTP requests; use a VirtualService'],
    ['gateway.networking.k8s.io/v1 Gateway', 'use a Gateway of networking.istio.io'],
    ['gateway.networking.k8s.io/v1 Novelty', 'Novelty: it has no effect here'],
    ['networking.k8s.io/v1 Ingress', 'Ingress: it routes no requests'],
    ['networking.istio.oi/v1 VirtualService', 'apiVersion: the group networking.istio.oi is not known'],
    ['network.istio.io/v1 Gateway', 'did you mean networking.istio.io?'],
    ['gateway.networking.k8s.oi/v1 HTTPRoute', 'did you mean gateway.networking.k8s.io?'],
  ])('of %s it is said what does not happen', (id, message) => {
    const content = kindsOf(id, id);
    expect(content.ignored).toBe(2);
    expect(content.reports.map(({ severity }) => severity)).toEqual(['warning', 'warning']);
    expect(printReport(content.reports[0]!)).toContain(message);
  });

  test.each([
    ['networking.k8s.io/v1 Ingress', 'spec: {ingressClassName: nginx}', 'nginx'],
    ['networking.k8s.io/v1 Ingress', 'metadata: {name: x, annotations: {kubernetes.io/ingress.class: alb}}', 'alb'],
    ['networking.k8s.io/v1 IngressClass', 'spec: {controller: k8s.io/ingress-nginx}', 'k8s.io/ingress-nginx'],
    ['gateway.networking.k8s.io/v1 Gateway', 'spec: {gatewayClassName: cilium}', 'cilium'],
    ['gateway.networking.k8s.io/v1 GatewayClass', 'spec: {controllerName: a.example/c}', 'a.example/c'],
  ])('%s with %s is for another controller', (id, more, name) => {
    const [apiVersion = '', kind = ''] = id.split(' ');
    const said = (text: string) =>
      read(
        `apiVersion: ${apiVersion}\nkind: ${kind}\n${text.includes('metadata') ? '' : 'metadata: {name: x}\n'}${text}\n`,
      );
    const { ignored, reports } = said(more);
    expect(ignored).toBe(1);
    expect(reports.map((report) => `${report.severity} ${printReport(report)}`)).toEqual([
      `warning a.yaml:2: kind: this ${kind} is for another controller (${name}), and is not read`,
    ]);
    for (const own of ['istio', 'istio-internal', 'istio.io/ingress-controller', '"{{ .Values.class }}"', '7'])
      expect(said(more.replace(name, own)).reports.map(printReport)).toEqual([
        expect.stringContaining(`Fairlead does not read ${kind}: `),
      ]);
  });

  test.each([
    [
      'networking.istio.io/v2 Gateway',
      'apiVersion: networking.istio.io/v2 is not a version of Gateway; write networking.istio.io/v1, networking.istio.io/v1beta1 or networking.istio.io/v1alpha3',
    ],
    [
      'networking.istio.io/v1 Virtualservice',
      'networking.istio.io has no kind Virtualservice; did you mean VirtualService?',
    ],
    ['networking.istio.io/v1 Novelty', 'networking.istio.io has no kind Novelty; it has WorkloadEntry, ServiceEntry,'],
    ['security.istio.io/v1 AuthorisationPolicy', 'did you mean AuthorizationPolicy?'],
    ['security.istio.io/v3 AuthorizationPolicy', 'security.istio.io/v3 is not a version of AuthorizationPolicy'],
    ['v2 Service', 'apiVersion: v2 is not a version of Service; write v1'],
    ['v1 Servcie', 'kind: Kubernetes has no kind Servcie; did you mean Service?'],
    ['discovery.k8s.io/v1beta1 EndpointSlice', 'write discovery.k8s.io/v1'],
  ])('%s is a mistake', (id, message) => {
    const content = kindsOf(id);
    expect(content).toMatchObject({ ignored: 0, reports: [{ severity: 'error', line: expect.any(Number) as number }] });
    expect(printReport(content.reports[0]!)).toContain(message);
  });

  test('anything but an object is ignored with a warning, or is an error where it resembles one', () => {
    const content = read('replicas: 2\n---\nkind: Service\n---\nhello\n');
    expect(content.reports.map((report) => `${report.severity} ${printReport(report)}`)).toEqual([
      'warning a.yaml:1: is not a Kubernetes object (it has neither apiVersion nor kind) and is ignored',
      'error a.yaml:3: apiVersion: is missing',
      'error a.yaml:5: is not a Kubernetes object; it needs apiVersion, kind and metadata',
    ]);
  });

  test('files of other tools are ignored with a warning, or in silence where they are complete', () => {
    const said = (text: string) => read(text).reports.map((report) => `${report.severity} ${printReport(report)}`);
    expect(said('apiVersion: v2\nname: shop\nversion: 0.1.0\n')).toEqual([
      'warning a.yaml:1: is not a Kubernetes object (it has neither kind nor metadata) and is ignored',
    ]);
    for (const kind of ['Kustomization', 'Component'])
      expect(said(`kind: ${kind}\nresources: [a.yaml]\n`)).toEqual([
        'warning a.yaml:1: is not a Kubernetes object (it has neither apiVersion nor metadata) and is ignored',
      ]);
    expect(said('apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n')).toEqual([]);
    expect(said('apiVersion: v1\nkind: Config\nclusters: []\n')).toEqual([]);
    expect(said('name: web\nkind: Deployment\nreplicaCount: 1\n')).toEqual([
      'warning a.yaml:1: is not a Kubernetes object (it has neither apiVersion nor metadata) and is ignored',
    ]);
    expect(said('apiVersion: 1\nproviders: [{name: default}]\n')).toEqual([
      'warning a.yaml:1: is not a Kubernetes object (it has neither kind nor metadata) and is ignored',
    ]);
    expect(said('- name: web\n  hosts: all\n')).toEqual([
      'warning a.yaml:1: is not a Kubernetes object (it is a list) and is ignored',
    ]);
    const patch = 'warning a.yaml:1: is a patch for another object, not an object, and is ignored; check the result';
    expect(said('- op: remove\n  path: /metadata/labels/x\n')).toEqual([patch]);
    const gone = 'apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: a}\n$patch: delete\n';
    expect(said(gone)).toEqual([patch]);
    expect(said('- op: remove\n- path: /a\n')).toEqual([expect.stringMatching(/^error /)]);
    // Objects without their `---` do not belong to another tool.
    for (const text of [
      '- apiVersion: v1\n  kind: Service\n  metadata: {name: a}\n',
      '- kind: Gateway\n',
      'kind: Gateway\napiVersion: 1\n',
    ])
      expect(said(text)).toEqual([expect.stringMatching(/^error /)]);
    // An object that is half typed may not take others away.
    for (const text of ['apiVersion: networking.istio.io/v1\n', 'apiVersion: v1\n', 'kind: Gateway\n'])
      expect(said(text)).toEqual([expect.stringMatching(/^error .* is missing$/)]);
  });

  test('a file may have any number of mistakes', () => {
    const content = read('no object\n');
    const many = { ...content, reports: Array.from({ length: 200_000 }, () => content.reports[0]!) };
    expect(mergeContents([many], lines).reports).toHaveLength(200_000);
  });

  test('an object of a megabyte is an object', () => {
    const routes = Array.from(
      { length: 10_000 },
      (_, i) => `  - route: [{destination: {host: h${i}, subset: "${'x'.repeat(80)}"}}]`,
    );
    const content = read(`${virtualService('a', 'a1')}${routes.join('\n')}\n`);
    expect(content.reports).toEqual([]);
    expect((content.objects[0]?.object as unknown as { spec: { http: unknown[] } }).spec.http).toHaveLength(10_001);
  });
});

test('the lines of objects that lists repeat are looked up once for each document', () => {
  const parsed: string[] = [];
  const counting = new Lines({
    kept: 0,
    parse(text) {
      parsed.push(text.slice(0, 20));
      return parseTree(text);
    },
  });
  const list = (from: number, to: number): string => {
    const items = Array.from({ length: to - from }, (_, i) => JSON.parse(json(`v${from + i}`)) as object);
    return JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, undefined, 1);
  };
  const json = (name: string): string =>
    JSON.stringify({
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      metadata: { namespace: 'shop', name },
      spec: { hosts: [name], http: [{ route: [{ destination: { host: 'a' } }] }] },
    });
  const contents = [list(0, 50), list(50, 100), list(0, 100)].map((text, i) =>
    nextContent(undefined, `${i}.json`, text, { validate, lines: counting }),
  );
  const [first, again] = [mergeContents(contents, counting), mergeContents(contents, counting)];
  expect(first.reports).toHaveLength(100);
  expect(again.reports).toEqual(first.reports);
  expect(parsed.length).toBeLessThanOrEqual(3);
});
