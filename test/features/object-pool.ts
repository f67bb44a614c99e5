import type { KubernetesObject } from '../../src/api/object.ts';
import { destinationRule, pod, service, serviceEntry, sidecar, slice, target, virtualService } from './objects.ts';

/** Objects that speak of each other, each in three variants. */
export const traffic: readonly ((variant: number) => KubernetesObject)[] = [
  ...['a', 'b'].flatMap((name, i) => [
    (v: number) => service(name, `10.96.${i}.${v + 1}`),
    (v: number) => slice(name, [target(`${name}-1`, `10.1.${i}.${v + 1}`), `10.1.${i}.9`]),
    (v: number) => pod(`${name}-1`, `10.1.${i}.${v + 1}`, { app: name, version: `v${v}` }),
    (v: number) =>
      destinationRule(name, {
        host: name,
        ...(v === 2 && { exportTo: ['.'] }),
        subsets: [{ name: 'v', labels: { version: `v${v}` } }],
      }),
    (v: number) =>
      virtualService(name, {
        hosts: [name],
        http: [
          {
            route: [
              { destination: { host: v === 0 ? 'b' : 'a', subset: 'v' }, weight: 1 },
              { destination: { host: name }, weight: v },
            ],
          },
        ],
      }),
  ]),
  (v) =>
    serviceEntry('api', {
      hosts: ['api.example.com'],
      ports: [{ number: 80 + v, name: 'http', protocol: 'HTTP' }],
      resolution: 'STATIC',
      ...(v === 1 && { exportTo: ['.'] }),
      endpoints: [{ address: `10.9.0.${v + 1}` }],
    }),
  (v) => sidecar('default', { egress: [{ hosts: [['./*'], ['./a.shop.svc.cluster.local'], ['*/*']][v] }] }),
];
