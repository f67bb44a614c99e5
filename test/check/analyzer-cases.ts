import { afterAll } from 'vitest';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import {
  authorizationPolicy,
  destinationRule,
  gateway,
  pod,
  secret,
  service,
  serviceEntry,
  sidecar,
  virtualService,
} from './checked.ts';

/** What Istio's analyzers find, in words of our own: what `check` says of it, and of the same without the mistake. */
export interface AnalyzerCase {
  readonly code: string;
  readonly wrong: readonly string[];
  readonly told: readonly string[];
  readonly mended: readonly string[];
  /** Why istioctl does not find this code in what is wrong, or finds it in what is mended; absent: it tells them apart. */
  readonly istioctl?: string;
}

const named = (kind: string, name: string, metadata: string): string =>
  `apiVersion: v1\nkind: ${kind}\nmetadata: {name: ${name}${metadata}}`;
const namespace = (labels: string, name = 'shop') => named('Namespace', name, `, labels: ${labels}`);
const deployment = (template: string, spec: string, metadata = '', name = 'web') =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ${name}, namespace: shop${metadata}}\nspec: {template: {metadata: ${template}, spec: ${spec}}}`;
const app = '{containers: [{name: app, image: app}]}';
const web = deployment('{labels: {app: web, version: v1}}', app);
const injected = pod('shop/web-1', '{app: web}', '[{name: app, image: app}, {name: istio-proxy, image: "proxy:2"}]');

const orders = service('shop/orders', '{selector: {app: orders}, ports: [{name: http, port: 8080}]}');
const two = service(
  'shop/orders',
  '{selector: {app: orders}, ports: [{name: http, port: 8080}, {name: tcp-b, port: 1}]}',
);
const of = (name: string, ports: string) => service(`shop/${name}`, `{selector: {app: web}, ports: ${ports}}`);
const routes = (spec: string, name = 'shop/v') => virtualService(name, spec);
const to = (destination: string, more = '') => `http: [{route: [{destination: ${destination}}]${more}}]`;

const front = service(
  'edge/front',
  '{selector: {istio: ingress}, ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 443, targetPort: 8443}]}',
);
const router = pod('edge/router', '{istio: ingress}', '[{name: istio-proxy, image: "proxy:1"}]');
const edge = (servers: string, name = 'edge/g', selector = '{istio: ingress}') =>
  gateway(name, `{selector: ${selector}, servers: [${servers}]}`);
const plain = (hosts = '["*"]', port = 80) =>
  `{port: {number: ${port}, name: p${port}, protocol: HTTP}, hosts: ${hosts}}`;
const tcp = '{port: {number: 80, name: t, protocol: TCP}, hosts: ["*"]}';
const tls = (credential: string, host: string) =>
  `{port: {number: 443, name: h, protocol: HTTPS}, hosts: [${host}], tls: {mode: SIMPLE, credentialName: ${credential}}}`;
const external = (name: string, spec: string) => serviceEntry(name, `{hosts: [x.example], resolution: DNS, ${spec}}`);
const annotated = (annotations: string) => deployment(`{labels: {app: web}, annotations: ${annotations}}`, app);
const noted = (annotations: string) =>
  service('shop/web', '{selector: {app: web}, ports: [{name: http, port: 80}]}', `, annotations: ${annotations}`);

const aged = (name: string, tag: string) =>
  pod(
    `shop/${name}`,
    '{app: web}',
    `[{name: istio-proxy, image: "proxy:${tag}"}]`,
    `, creationTimestamp: "2026-01-0${name.at(-1)}T00:00:00Z"`,
  );

const pair = (): string => {
  const openssl = new OpenSsl(afterAll);
  openssl.write('empty.cnf', '[req]\ndistinguished_name = dn\n[dn]\n');
  openssl.run(
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout k -out c -subj /CN=a -config empty.cnf',
  );
  return JSON.stringify({ 'tls.crt': openssl.read('c'), 'tls.key': openssl.read('k') });
};

const v = 'warning VirtualService/shop/v';
const g2 = 'warning Gateway/edge/g2';
const onWeb = 'warning Deployment/shop/web';
const ofApp = 'spec.template.spec.containers[0]';
const site = pair();

export const cases: readonly AnalyzerCase[] = [
  {
    code: 'IST0101',
    wrong: [router, edge(plain(), 'edge/g', '{istio: ingres}')],
    told: ['warning Gateway/edge/g spec.selector'],
    mended: [router, edge(plain())],
  },
  {
    code: 'IST0101',
    wrong: [router, edge(tls('site', 'a.example')), secret('edge/other', site)],
    told: ['warning Gateway/edge/g spec.servers[0].tls.credentialName'],
    mended: [router, edge(tls('site', 'a.example')), secret('edge/site', site)],
  },
  {
    code: 'IST0101',
    istioctl: 'its Pods are those in the cluster, not those that templates make',
    wrong: [web, sidecar('shop/s', '{workloadSelector: {labels: {app: nobody}}, egress: [{hosts: ["./*"]}]}')],
    told: ['warning Sidecar/shop/s spec.workloadSelector'],
    mended: [web, sidecar('shop/s', '{workloadSelector: {labels: {app: web}}, egress: [{hosts: ["./*"]}]}')],
  },
  {
    code: 'IST0101',
    wrong: [
      orders,
      routes(
        '{hosts: [a.example], gateways: [edge/none], http: [{route: [{destination: {host: gone}}], mirror: {host: lost}}, {route: [{destination: {host: orders, subset: v9}}]}]}',
      ).replace('http: [{route', 'http: [{match: [{uri: {prefix: /a}}], route'),
    ],
    told: [
      `${v} spec.gateways[0]`,
      `${v} spec.http[0].mirror.host`,
      `${v} spec.http[0].route[0].destination.host`,
      `${v} spec.http[1].route[0].destination.subset`,
    ],
    mended: [orders, routes(`{hosts: [a.example], ${to('{host: orders}', ', mirror: {host: orders}')}}`)],
  },
  {
    code: 'IST0101',
    istioctl: 'it looks at the selectors of Sidecars alone',
    wrong: [
      web,
      orders,
      destinationRule(
        'shop/d',
        '{host: orders, workloadSelector: {matchLabels: {app: nobody}}, trafficPolicy: {loadBalancer: {simple: RANDOM}}}',
      ),
      serviceEntry(
        'shop/e',
        '{hosts: [x.example], resolution: STATIC, workloadSelector: {labels: {app: nobody}}, ports: [{number: 80, name: http, protocol: HTTP}]}',
      ),
    ],
    told: ['warning DestinationRule/shop/d spec.workloadSelector', 'warning ServiceEntry/shop/e spec.workloadSelector'],
    mended: [
      web,
      orders,
      destinationRule(
        'shop/d',
        '{host: orders, workloadSelector: {matchLabels: {app: web}}, trafficPolicy: {loadBalancer: {simple: RANDOM}}}',
      ),
      serviceEntry(
        'shop/e',
        '{hosts: [x.example], resolution: STATIC, workloadSelector: {labels: {app: web}}, ports: [{number: 80, name: http, protocol: HTTP}]}',
      ),
    ],
  },
  {
    code: 'IST0102',
    wrong: [namespace('{team: a}'), web],
    told: ['warning Namespace/shop metadata.labels'],
    mended: [namespace('{istio-injection: enabled}'), web],
  },
  {
    code: 'IST0102',
    istioctl: 'any value is a decision',
    wrong: [namespace('{istio-injection: "true"}'), web],
    told: ['warning Namespace/shop metadata.labels["istio-injection"]'],
    mended: [namespace('{istio-injection: disabled}'), web],
  },
  {
    code: 'IST0103',
    wrong: [namespace('{istio-injection: enabled}'), pod('shop/web-1', '{app: web}')],
    told: ['warning Pod/shop/web-1 spec.containers'],
    mended: [namespace('{istio-injection: enabled}'), injected],
  },
  {
    code: 'IST0106',
    wrong: [orders, destinationRule('shop/d', '{host: orders, trafficPolicy: {loadBalancer: {simple: FASTEST}}}')],
    told: ['error DestinationRule/shop/d spec.trafficPolicy.loadBalancer.simple'],
    mended: [orders, destinationRule('shop/d', '{host: orders, trafficPolicy: {loadBalancer: {simple: RANDOM}}}')],
  },
  {
    code: 'IST0107',
    wrong: [noted('{sidecar.istio.io/proxyCPU: "1"}')],
    told: ['warning Service/shop/web metadata.annotations["sidecar.istio.io/proxyCPU"]'],
    mended: [noted('{networking.istio.io/exportTo: "."}')],
  },
  {
    code: 'IST0107',
    wrong: [deployment('{labels: {app: web}}', app, ', annotations: {sidecar.istio.io/proxyCPU: "1"}')],
    told: [`${onWeb} metadata.annotations["sidecar.istio.io/proxyCPU"]`],
    mended: [annotated('{sidecar.istio.io/proxyCPU: "1"}')],
  },
  {
    code: 'IST0108',
    istioctl: 'it looks at no annotations in templates',
    wrong: [annotated('{sidecar.istio.io/proxyCpu: "1"}')],
    told: [`${onWeb} spec.template.metadata.annotations["sidecar.istio.io/proxyCpu"]`],
    mended: [annotated('{sidecar.istio.io/proxyCPU: "1", example.com/note: x}')],
  },
  {
    code: 'IST0109',
    wrong: [
      orders,
      routes(`{hosts: [orders], ${to('{host: orders}')}}`, 'shop/a'),
      routes(`{hosts: [orders], ${to('{host: orders}')}}`),
    ],
    told: ['error VirtualService/shop/v spec.hosts'],
    mended: [orders, routes(`{hosts: [orders], ${to('{host: orders}')}}`)],
  },
  {
    code: 'IST0109',
    wrong: [
      orders,
      routes(`{hosts: [orders], exportTo: [till], ${to('{host: orders}')}}`),
      routes(
        '{hosts: [orders.shop.svc.cluster.local], http: [{route: [{destination: {host: orders.shop.svc.cluster.local}}]}]}',
        'till/own',
      ),
    ],
    told: ['error VirtualService/till/own spec.hosts'],
    mended: [
      orders,
      routes(`{hosts: [orders], exportTo: [till], ${to('{host: orders}')}}`, 'shop/a'),
      routes(`{hosts: [orders], exportTo: [bank], ${to('{host: orders}')}}`),
    ],
  },
  {
    code: 'IST0109',
    wrong: [
      orders,
      ...['shop/a', 'shop/v'].map((name) => routes(`{hosts: ["*.x.example"], ${to('{host: orders}')}}`, name)),
    ],
    told: ['error VirtualService/shop/v spec.hosts'],
    mended: [
      orders,
      routes(`{hosts: ["*.x.example"], ${to('{host: orders}')}}`, 'shop/a'),
      routes(`{hosts: [a.x.example, "*.y.x.example"], ${to('{host: orders}')}}`),
    ],
  },
  {
    code: 'IST0111',
    wrong: ['shop/s', 'shop/t'].map((name) => sidecar(name, '{egress: [{hosts: ["./*"]}]}')),
    told: ['error Sidecar/shop/t spec'],
    mended: [sidecar('shop/s', '{egress: [{hosts: ["./*"]}]}')],
  },
  {
    code: 'IST0112',
    wrong: [two, routes(`{hosts: [a.example], ${to('{host: orders}')}}`)],
    told: [`${v} spec.http[0].route[0].destination.port`],
    mended: [two, routes(`{hosts: [a.example], ${to('{host: orders, port: {number: 8080}}')}}`)],
  },
  {
    code: 'IST0112',
    istioctl: 'a Service with several ports always needs one',
    wrong: [two, front, edge(plain()), routes(`{hosts: [a.example], gateways: [edge/g], ${to('{host: orders}')}}`)],
    told: [`${v} spec.http[0].route[0].destination.port`],
    mended: [two, routes(`{hosts: [orders], ${to('{host: orders}')}}`)],
  },
  {
    code: 'IST0112',
    istioctl: 'a Service with several ports always needs one',
    wrong: [
      two,
      service('shop/x', '{selector: {app: x}, ports: [{name: http, port: 80}]}'),
      routes(`{hosts: [a.example], ${to('{host: x}', ', mirror: {host: orders}')}}`),
    ],
    told: [`${v} spec.http[0].mirror.port`],
    mended: [
      service('shop/orders', '{selector: {app: orders}, ports: [{name: http, port: 80}, {name: tcp-b, port: 1}]}'),
      routes(`{hosts: [a.example], ${to('{host: orders}')}}`),
    ],
  },
  {
    code: 'IST0116',
    istioctl: 'protocols are TCP and UDP, not those of HTTP and others',
    wrong: [web, of('a', '[{name: http, port: 80}]'), of('b', '[{name: tcp, port: 80}]')],
    told: ['warning Service/shop/b spec.ports[0]'],
    mended: [
      web,
      of('a', '[{name: http, port: 80}]'),
      of('b', '[{name: http, port: 80}, {name: u, port: 80, protocol: UDP}]'),
    ],
  },
  {
    code: 'IST0118',
    istioctl: 'the API server refuses such Services; ports that stand for a protocol are unknown',
    wrong: [of('web', '[{name: frontend, port: 80}, {port: 81}, {name: c, port: 82, appProtocol: foo}]')],
    told: [0, 1, 2].map((i) => `warning Service/shop/web spec.ports[${i}]`),
    mended: [
      of('web', '[{name: http-frontend, port: 80}, {name: a, port: 81, appProtocol: tcp}, {name: b, port: 3306}]'),
      front,
      edge(plain()),
    ],
  },
  {
    code: 'IST0123',
    wrong: [namespace('{istio-injection: enabled, istio.io/rev: canary}')],
    told: ['warning Namespace/shop metadata.labels["istio.io/rev"]'],
    mended: [namespace('{istio.io/rev: canary}')],
  },
  {
    code: 'IST0125',
    istioctl: 'it looks at no annotations in templates',
    wrong: [annotated('{sidecar.istio.io/proxyCPU: much, traffic.sidecar.istio.io/excludeInboundPorts: http}')],
    told: ['sidecar.istio.io/proxyCPU', 'traffic.sidecar.istio.io/excludeInboundPorts'].map(
      (name) => `error Deployment/shop/web spec.template.metadata.annotations["${name}"]`,
    ),
    mended: [annotated('{sidecar.istio.io/proxyCPU: 100m, traffic.sidecar.istio.io/excludeInboundPorts: "80,81"}')],
  },
  {
    code: 'IST0125',
    istioctl: 'it knows no values of these annotations',
    wrong: [noted('{networking.istio.io/exportTo: "Team_A", networking.istio.io/traffic-distribution: Nearest}')],
    told: ['networking.istio.io/exportTo', 'networking.istio.io/traffic-distribution'].map(
      (name) => `warning Service/shop/web metadata.annotations["${name}"]`,
    ),
    mended: [
      noted('{networking.istio.io/exportTo: "., team-a", networking.istio.io/traffic-distribution: PreferClose}'),
    ],
  },
  {
    code: 'IST0127',
    istioctl: 'its Pods are those in the cluster, not those that templates make',
    wrong: [web, authorizationPolicy('shop/a', '{selector: {matchLabels: {app: nobody}}}')],
    told: ['warning AuthorizationPolicy/shop/a spec.selector'],
    mended: [web, authorizationPolicy('shop/a', '{selector: {matchLabels: {app: web}}}')],
  },
  {
    code: 'IST0130',
    wrong: [
      orders,
      routes(
        `{hosts: [orders], http: [{route: [{destination: {host: orders}}]}, {match: [{uri: {prefix: /x}}], route: [{destination: {host: orders}}]}]}`,
      ),
    ],
    told: [`${v} spec.http[1]`],
    mended: [
      orders,
      routes(
        `{hosts: [orders], http: [{match: [{uri: {prefix: /x}}], route: [{destination: {host: orders}}]}, {route: [{destination: {host: orders}}]}]}`,
      ),
    ],
  },
  {
    code: 'IST0131',
    wrong: [
      orders,
      routes(
        '{hosts: [orders], http: [{match: [{uri: {prefix: /x}}, {uri: {prefix: /x}}], route: [{destination: {host: orders}}]}]}',
      ),
    ],
    told: [`${v} spec.http[0].match[1]`],
    mended: [
      orders,
      routes(
        '{hosts: [orders], http: [{match: [{uri: {prefix: /x}}, {uri: {prefix: /y}}], route: [{destination: {host: orders}}]}]}',
      ),
    ],
  },
  {
    code: 'IST0132',
    wrong: [
      orders,
      front,
      edge(plain('[a.example]')),
      routes(`{hosts: [b.example], gateways: [edge/g], ${to('{host: orders}')}}`),
    ],
    told: [`${v} spec.gateways[0]`],
    mended: [
      orders,
      front,
      edge(plain('["*.example"]')),
      routes(`{hosts: [b.example], gateways: [edge/g], ${to('{host: orders}')}}`),
    ],
  },
  {
    code: 'IST0133',
    istioctl: 'it is an error of the schema, IST0106',
    wrong: [orders, routes(`{hosts: [orders], ${to('{host: orders}', ', headers: {request: {set: {":path": /x}}}')}}`)],
    told: [`${v} spec.http[0].headers.request.set[":path"]`],
    mended: [orders, routes(`{hosts: [orders], ${to('{host: orders}', ', headers: {request: {set: {x-path: /x}}}')}}`)],
  },
  {
    code: 'IST0134',
    wrong: [external('shop/e', 'ports: [{number: 80, name: tcp, protocol: TCP}]')],
    told: ['warning ServiceEntry/shop/e spec.addresses'],
    mended: [external('shop/e', 'addresses: [198.51.100.7], ports: [{number: 80, name: tcp, protocol: TCP}]')],
  },
  {
    code: 'IST0135',
    istioctl: 'it looks at no annotations in templates',
    wrong: [annotated('{sidecar.istio.io/inject: "false", sidecar.istio.io/statsInclusionPrefixes: a}')],
    told: ['sidecar.istio.io/inject', 'sidecar.istio.io/statsInclusionPrefixes'].map(
      (name) => `${onWeb} spec.template.metadata.annotations["${name}"]`,
    ),
    mended: [
      deployment(
        '{labels: {app: web, sidecar.istio.io/inject: "false"}, annotations: {sidecar.istio.io/inject: "false"}}',
        app,
      ),
    ],
  },
  {
    code: 'IST0137',
    wrong: [
      web,
      of('a', '[{name: http, port: 80, targetPort: 8080}]'),
      of('b', '[{name: http, port: 81, targetPort: 8080}]'),
    ],
    told: ['warning Service/shop/b spec.ports[0]'],
    mended: [
      web,
      of('a', '[{name: http, port: 80, targetPort: 8080}]'),
      of('b', '[{name: http, port: 80, targetPort: 8080}]'),
    ],
  },
  {
    code: 'IST0138',
    wrong: [front, edge(tls('site', 'a.example')), edge(tls('site', 'b.example'), 'edge/g2')],
    told: [`${g2} spec.servers[0].tls`],
    mended: [front, edge(tls('site', 'a.example')), edge(tls('own', 'b.example'), 'edge/g2')],
  },
  {
    code: 'IST0144',
    wrong: [
      deployment('{labels: {app: web}}', '{containers: [{name: app, image: app, securityContext: {runAsUser: 1337}}]}'),
    ],
    told: [`${onWeb} ${ofApp}.securityContext.runAsUser`],
    mended: [
      deployment('{labels: {app: web}}', '{containers: [{name: app, image: app, securityContext: {runAsUser: 1000}}]}'),
    ],
  },
  {
    code: 'IST0144',
    istioctl: 'the user of the Pod counts, whatever its containers',
    wrong: [
      deployment('{labels: {app: web}}', '{securityContext: {runAsUser: 1337}, containers: [{name: app, image: app}]}'),
    ],
    told: [`${onWeb} spec.template.spec.securityContext.runAsUser`],
    mended: [
      deployment(
        '{labels: {app: web}}',
        '{securityContext: {runAsUser: 1337}, containers: [{name: istio-proxy, image: p}]}',
      ),
    ],
  },
  {
    code: 'IST0145',
    wrong: [front, edge(tls('one', 'a.example')), edge(tls('two', 'a.example'), 'edge/g2')],
    told: ['error Gateway/edge/g2 spec.servers[0].hosts'],
    mended: [front, edge(tls('one', 'a.example')), edge(tls('two', 'b.example'), 'edge/g2')],
  },
  {
    code: 'IST0145',
    wrong: [front, edge(plain('[a.example]')), edge(plain('[a.example, b.example]'), 'edge/g2')],
    told: [`${g2} spec.servers[0].hosts`],
    mended: [front, edge(plain('[a.example]')), edge(plain('[b.example]'), 'edge/g2')],
  },
  {
    code: 'IST0145',
    wrong: [front, edge(plain()), edge(tcp, 'edge/g2')],
    told: ['error Gateway/edge/g2 spec.servers[0].port'],
    mended: [front, edge(plain()), edge(tcp, 'edge/g2', '{istio: egress}'), pod('edge/egress', '{istio: egress}')],
  },
  {
    code: 'IST0146',
    istioctl: 'there is no webhook in the cluster',
    wrong: [
      namespace('{istio-injection: disabled}'),
      deployment('{labels: {app: web}}', '{containers: [{name: istio-proxy, image: auto}]}'),
    ],
    told: [`error Deployment/shop/web ${ofApp}.image`],
    mended: [
      namespace('{istio-injection: enabled}'),
      deployment('{labels: {app: web}}', '{containers: [{name: istio-proxy, image: auto}]}'),
    ],
  },
  {
    code: 'IST0147',
    wrong: [pod('shop/gw', '{app: gw}', '[{name: istio-proxy, image: auto}]')],
    told: ['error Pod/shop/gw spec.containers[0].image'],
    mended: [injected],
  },
  {
    code: 'IST0149',
    wrong: [
      orders,
      front,
      router,
      edge(plain()),
      routes(
        '{hosts: [a.example], gateways: [edge/g], http: [{match: [{headers: {"@request.auth.claims.sub": {exact: a}}}], route: [{destination: {host: orders}}]}]}',
      ),
    ],
    told: [`${v} spec.http[0].match[0]`],
    mended: [
      orders,
      front,
      router,
      edge(plain()),
      routes(`{hosts: [a.example], gateways: [edge/g], ${to('{host: orders}')}}`),
    ],
  },
  {
    code: 'IST0158',
    istioctl: 'there is no ConfigMap of injection',
    wrong: [aged('web-1', '1'), aged('web-2', '2')],
    told: ['warning Pod/shop/web-1 spec.containers[0].image'],
    mended: [aged('web-1', '2'), aged('web-2', '2')],
  },
  {
    code: 'IST0161',
    wrong: [router, edge(tls('site', 'a.example')), secret('edge/site', '{tls.crt: one, tls.key: two}')],
    told: ['warning Gateway/edge/g spec.servers[0].tls.credentialName'],
    mended: [router, edge(tls('site', 'a.example')), secret('edge/site', site)],
  },
  {
    code: 'IST0162',
    wrong: [front, router, edge(plain('["*"]', 8004))],
    told: ['warning Gateway/edge/g spec.servers[0].port.number'],
    mended: [front, router, edge(plain('["*"]', 80))],
  },
  {
    code: 'IST0165',
    wrong: [
      orders,
      routes(`{hosts: [a.example], gateways: [edge/g~istio-autogenerated-k8s-gateway~http], ${to('{host: orders}')}}`),
    ],
    told: ['error VirtualService/shop/v spec.gateways[0]'],
    mended: [orders, front, edge(plain()), routes(`{hosts: [a.example], gateways: [edge/g], ${to('{host: orders}')}}`)],
  },
  {
    code: 'IST0167',
    wrong: [namespace('{istio.io/dataplane-mode: ambient}'), sidecar('shop/s', '{egress: [{hosts: ["./*"]}]}')],
    told: ['warning Namespace/shop metadata.labels["istio.io/dataplane-mode"]'],
    mended: [namespace('{istio-injection: enabled}'), sidecar('shop/s', '{egress: [{hosts: ["./*"]}]}')],
  },
  {
    code: 'IST0173',
    istioctl: 'its Pods are those in the cluster, not those that templates make',
    wrong: [
      of('web', '[{name: http, port: 80}]'),
      web,
      destinationRule('shop/d', '{host: web, subsets: [{name: v2, labels: {version: v2}}]}'),
    ],
    told: ['warning DestinationRule/shop/d spec.subsets[0].labels'],
    mended: [
      of('web', '[{name: http, port: 80}]'),
      web,
      destinationRule('shop/d', '{host: web, subsets: [{name: v1, labels: {version: v1}}]}'),
    ],
  },
  {
    code: 'IST0174',
    wrong: [destinationRule('shop/d', '{host: gone}')],
    told: ['warning DestinationRule/shop/d spec.host'],
    mended: [orders, destinationRule('shop/d', '{host: orders}')],
  },
  {
    code: 'IST0177',
    wrong: [
      external('shop/e', 'ports: [{number: 80, name: p, protocol: HTTP}]'),
      external('shop/f', 'ports: [{number: 80, name: p, protocol: TLS}]'),
    ],
    told: ['warning ServiceEntry/shop/f spec.ports'],
    mended: [
      external('shop/e', 'ports: [{number: 80, name: p, protocol: HTTP}]'),
      external('shop/f', 'ports: [{number: 80, name: p, protocol: HTTP}, {number: 443, name: q, protocol: TLS}]'),
    ],
  },
];
