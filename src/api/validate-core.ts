import type { ForeignKindName } from './kinds.ts';
import type { Finding } from './schema-compile.ts';
import type { FieldPath } from './schema-path.ts';
import { isObject } from './json.ts';

/** Returns why a value is wrong, or nothing. Members report for themselves; a null member counts as absent. */
type Shape = (value: unknown, path: FieldPath, errors: Finding[]) => string | undefined;

const text: Shape = (value) => (typeof value === 'string' ? undefined : 'must be a string; put it in quotes');
const base64: Shape = (value) =>
  typeof value === 'string' &&
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value.replace(/[\r\n]/g, ''))
    ? undefined
    : 'must be base64; put plain text into stringData';
const bool: Shape = (value) => (typeof value === 'boolean' ? undefined : 'must be true or false');

const oneOf =
  (...values: readonly string[]): Shape =>
  (value) =>
    values.includes(value as string) ? undefined : `must be one of ${values.join(', ')}`;

const integer =
  (from: number, to: number): Shape =>
  (value) =>
    Number.isInteger(value) && (value as number) >= from && (value as number) <= to
      ? undefined
      : `must be a whole number from ${from} to ${to}`;

const portOrName: Shape = (value) =>
  typeof value === 'string' && value !== '' ? undefined : integer(1, 65535)(value, [], []);

const list =
  (item: Shape): Shape =>
  (value, path, errors) => {
    if (!Array.isArray(value)) return 'must be a list';
    for (const [index, member] of value.entries()) check(item, member, [...path, index], errors);
    return undefined;
  };

const map =
  (member: Shape): Shape =>
  (value, path, errors) => {
    if (!isObject(value)) return 'must be a map';
    for (const [key, entry] of Object.entries(value)) if (entry !== null) check(member, entry, [...path, key], errors);
    return undefined;
  };

/** Fields that are not listed are not read, so they may be anything. `required` fields come first. */
const object =
  (required: Readonly<Record<string, Shape>>, optional: Readonly<Record<string, Shape>> = {}): Shape =>
  (value, path, errors) => {
    if (!isObject(value)) return 'must be an object';
    const has = (key: string): boolean => Object.hasOwn(value, key) && value[key] !== null;
    for (const [key, shape] of Object.entries(required)) {
      if (has(key)) check(shape, value[key], [...path, key], errors);
      else errors.push({ path: [...path, key], message: 'is missing' });
    }
    for (const [key, shape] of Object.entries(optional)) if (has(key)) check(shape, value[key], [...path, key], errors);
    return undefined;
  };

function check(shape: Shape, value: unknown, path: FieldPath, errors: Finding[]): void {
  const message = shape(value, path, errors);
  if (message !== undefined) errors.push({ path, message });
}

const port = integer(1, 65535);
const protocol = oneOf('TCP', 'UDP', 'SCTP');
const targetRef = object({}, { kind: text, namespace: text, name: text });
const containers = list(
  object({}, { restartPolicy: text, ports: list(object({ containerPort: port }, { name: text, protocol })) }),
);
const addresses = list(object({ ip: text }, { hostname: text, nodeName: text, targetRef }));

/** The fields of kinds that others define which the model reads, checked as by the API server. */
const shapes: Readonly<Record<ForeignKindName | 'Secret', Shape>> = {
  ConfigMap: object({}, { data: map(text) }),
  Secret: object({}, { type: text, data: map(base64), stringData: map(text) }),
  Namespace: object({}),
  Node: object({}, { status: object({}, { addresses: list(object({ type: text, address: text })) }) }),
  Pod: object(
    {},
    {
      spec: object(
        {},
        {
          nodeName: text,
          serviceAccountName: text,
          hostname: text,
          subdomain: text,
          containers,
          initContainers: containers,
        },
      ),
      status: object(
        {},
        {
          phase: oneOf('Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'),
          podIP: text,
          podIPs: list(object({ ip: text })),
          conditions: list(object({ type: text, status: text })),
        },
      ),
    },
  ),
  Service: object(
    {
      spec: object(
        {},
        {
          type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
          clusterIP: text,
          clusterIPs: list(text),
          externalName: text,
          externalIPs: list(text),
          ports: list(
            object(
              { port },
              { name: text, protocol, appProtocol: text, targetPort: portOrName, nodePort: integer(0, 65535) },
            ),
          ),
          selector: map(text),
          internalTrafficPolicy: oneOf('Cluster', 'Local'),
          trafficDistribution: text,
          publishNotReadyAddresses: bool,
          sessionAffinity: oneOf('None', 'ClientIP'),
          sessionAffinityConfig: object({}, { clientIP: object({}, { timeoutSeconds: integer(1, 86_400) }) }),
          ipFamilies: list(oneOf('IPv4', 'IPv6')),
        },
      ),
    },
    {
      status: object(
        {},
        {
          loadBalancer: object({}, { ingress: list(object({}, { ip: text, hostname: text })) }),
        },
      ),
    },
  ),
  EndpointSlice: object(
    { addressType: oneOf('IPv4', 'IPv6', 'FQDN') },
    {
      ports: list(object({}, { name: text, port, protocol, appProtocol: text })),
      endpoints: list(
        object(
          { addresses: list(text) },
          {
            conditions: object({}, { ready: bool, serving: bool, terminating: bool }),
            hostname: text,
            nodeName: text,
            zone: text,
            hints: object({}, { forZones: list(object({ name: text })) }),
            targetRef,
          },
        ),
      ),
    },
  ),
  ServiceExport: object({}),
  ServiceImport: object({
    spec: object(
      {
        type: oneOf('ClusterSetIP', 'Headless'),
        ports: list(object({ port }, { name: text, protocol, appProtocol: text })),
      },
      { ips: list(text), internalTrafficPolicy: oneOf('Cluster', 'Local'), trafficDistribution: text },
    ),
  }),
  Endpoints: object(
    {},
    {
      subsets: list(
        object(
          {},
          {
            addresses,
            notReadyAddresses: addresses,
            ports: list(object({ port }, { name: text, protocol, appProtocol: text })),
          },
        ),
      ),
    },
  ),
};

export function validateCore(object: unknown, kind: ForeignKindName | 'Secret'): readonly Finding[] {
  const errors: Finding[] = [];
  check(shapes[kind], object, [], errors);
  return errors;
}
