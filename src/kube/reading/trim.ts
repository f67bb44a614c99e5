import { deepEqual } from '../../cache/equal.ts';
import type { Kind, KindName } from '../../api/kinds.ts';
import { isMeshAnnotation, type KubernetesObject, type ObjectMeta } from '../../api/object.ts';
import type { Shape } from './informer.ts';
import type { Interner } from './interner.ts';
import { isObject, type Json } from '../../api/json.ts';

type Trim = (raw: Json, interner: Interner) => Json;

/** What is kept of each kind: only what the model reads. All functions are pure and accept any JSON. */
const trims: Readonly<Record<KindName, Trim>> = {
  ConfigMap: trimConfigMap,
  Namespace: trimNamespace,
  Node: trimNode,
  Pod: trimPod,
  Service: trimService,
  EndpointSlice: trimEndpointSlice,
  Endpoints: trimEndpoints,
  ServiceExport: trimServiceExport,
  ServiceImport: trimServiceImport,
  VirtualService: trimCustom,
  DestinationRule: trimCustom,
  ServiceEntry: trimCustom,
  Gateway: trimCustom,
  Sidecar: trimCustom,
  ProxyConfig: trimCustom,
  WorkloadEntry: trimCustom,
  PeerAuthentication: trimCustom,
  RequestAuthentication: trimCustom,
  AuthorizationPolicy: trimCustom,
};

export function shapeOf(kind: Kind<KindName>, interner: Interner): Shape {
  const trim = trims[kind.name];
  const prefix = kind.group === '' ? '' : `${kind.group}/`;
  return {
    // The informer has checked that there is a name.
    trim: (raw, version = kind.version) =>
      ({
        apiVersion: interner.string(`${prefix}${version}`),
        kind: kind.kind,
        ...trim(raw, interner),
      }) as unknown as KubernetesObject,
    same: kind.custom || kind.isReported === true ? sameForModel : deepEqual,
  };
}

function trimCustom(raw: Json, interner: Interner): Json {
  const { metadata } = raw;
  const status = object(raw['status']);
  const { observedGeneration } = status;
  return {
    metadata: {
      ...meta(metadata, interner, 'uid', 'generation', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp'),
      ...texts('labels', object(metadata)['labels'], interner),
      ...texts('annotations', object(metadata)['annotations'], interner, isMeshAnnotation),
    },
    ...(raw['spec'] === undefined ? {} : { spec: raw['spec'] }),
    ...present('status', {
      ...Object.fromEntries(
        STATUS_LISTS.filter((list) => Array.isArray(status[list])).map((list) => [list, status[list]]),
      ),
      ...(isGeneration(observedGeneration) ? { observedGeneration } : {}),
    }),
  };
}

/** What is compared with what we would write. */
const STATUS_LISTS = ['conditions', 'addresses', 'parents', 'ancestors', 'listeners'];

/** A number, or, as Istio writes it, its text: anybody may write anything there. */
function isGeneration(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && /^\d{1,19}$/.test(value));
}

/** Of a status, the model reads only two things: the health of a WorkloadEntry, and allocated addresses. */
function sameForModel(a: KubernetesObject, b: KubernetesObject): boolean {
  return deepEqual(modelPart(a as unknown as Json), modelPart(b as unknown as Json));
}

function modelPart({ metadata, status, ...rest }: Json): Json {
  const { resourceVersion: _, ...own } = object(metadata);
  const { conditions, addresses } = object(status);
  const healthy = objects(conditions)
    .filter((condition) => condition['type'] === 'Healthy')
    .map((condition) => condition['status']);
  return { ...rest, metadata: own, healthy, addresses };
}

function trimConfigMap(raw: Json, interner: Interner): Json {
  const data = object(raw['data']);
  return {
    metadata: meta(raw['metadata'], interner, 'uid', 'creationTimestamp'),
    data: pick(data, 'mesh', 'meshNetworks'),
  };
}

function trimNamespace(raw: Json, interner: Interner): Json {
  const { labels, annotations } = object(raw['metadata']);
  return {
    metadata: {
      ...meta(raw['metadata'], interner, 'deletionTimestamp'),
      ...texts('labels', labels, interner),
      ...texts('annotations', annotations, interner, isMeshAnnotation),
    },
  };
}

function trimNode(raw: Json, interner: Interner): Json {
  const { labels, annotations } = object(raw['metadata']);
  const external = objects(object(raw['status'])['addresses']).filter(({ type }) => type === 'ExternalIP');
  return {
    metadata: {
      ...meta(raw['metadata'], interner),
      ...texts('labels', labels, interner),
      ...texts('annotations', annotations, interner, isMeshAnnotation),
    },
    ...(external.length > 0 && { status: { addresses: external.map((each) => pick(each, 'type', 'address')) } }),
  };
}

function trimPod(raw: Json, interner: Interner): Json {
  const { labels, annotations, ownerReferences } = object(raw['metadata']);
  const { containers, initContainers, ...spec } = object(raw['spec']);
  const { phase, podIP, podIPs, conditions } = object(raw['status']);
  const owners = objects(ownerReferences).map((owner) => pick(owner, 'kind', 'name', 'controller'));
  const ports = (list: unknown): Json[] =>
    objects(list)
      .filter((container) => objects(container['ports']).length > 0)
      .map((container) => ({
        ...pick(container, 'name', 'restartPolicy'),
        ports: objects(container['ports']).map((port) => pick(port, 'name', 'containerPort', 'protocol')),
      }));
  const ready = objects(conditions)
    .filter(({ type }) => type === 'Ready')
    .map((condition) => pick(condition, 'type', 'status'));
  // A single-stack Pod has its address twice.
  const families = objects(podIPs).map((entry) => pick(entry, 'ip'));
  return {
    metadata: {
      ...meta(raw['metadata'], interner, 'uid', 'deletionTimestamp'),
      ...texts('labels', labels, interner),
      ...texts('annotations', annotations, interner, isMeshAnnotation),
      ...listed('ownerReferences', owners, interner),
    },
    spec: {
      ...shared(pick(spec, 'nodeName', 'serviceAccountName', 'hostNetwork', 'hostname', 'subdomain'), interner),
      ...listed('containers', ports(containers), interner),
      ...listed('initContainers', ports(initContainers), interner),
    },
    status: {
      ...shared({ phase }, interner),
      ...(podIP === undefined ? {} : { podIP }),
      ...(families.length > 1 ? { podIPs: families } : {}),
      ...listed('conditions', ready, interner),
    },
  };
}

function trimService(raw: Json, interner: Interner): Json {
  const { metadata, spec, status } = raw;
  const ingress = objects(object(object(status)['loadBalancer'])['ingress']).map((e) => pick(e, 'ip', 'hostname'));
  return {
    metadata: {
      ...meta(metadata, interner, 'uid', 'creationTimestamp', 'deletionTimestamp'),
      ...texts('labels', object(metadata)['labels'], interner),
      ...texts('annotations', object(metadata)['annotations'], interner, isMeshAnnotation),
    },
    spec: {
      ...shared(
        pick(
          object(spec),
          // Elsewhere, the addresses say it.
          ...(object(spec)['clusterIP'] === 'None' ? ['ipFamilies'] : []),
          ...(object(spec)['sessionAffinity'] === 'ClientIP' ? ['sessionAffinity', 'sessionAffinityConfig'] : []),
          'type',
          'clusterIP',
          'clusterIPs',
          'externalName',
          'externalIPs',
          'ports',
          'selector',
          'internalTrafficPolicy',
          'trafficDistribution',
          'publishNotReadyAddresses',
        ),
        interner,
      ),
    },
    ...(ingress.length === 0 ? {} : { status: { loadBalancer: { ingress } } }),
  };
}

function trimEndpointSlice(raw: Json, interner: Interner): Json {
  return {
    metadata: {
      ...meta(raw['metadata'], interner, 'deletionTimestamp'),
      ...texts('labels', object(raw['metadata'])['labels'], interner),
    },
    ...shared(pick(raw, 'addressType'), interner),
    ports: interner.value(objects(raw['ports']).map((port) => pick(port, 'name', 'port', 'protocol', 'appProtocol'))),
    endpoints: objects(raw['endpoints']).map((endpoint) => ({
      addresses: endpoint['addresses'] ?? [],
      ...shared(pick(endpoint, 'conditions', 'hostname', 'nodeName', 'zone', 'hints'), interner),
      ...target(endpoint['targetRef'], interner),
    })),
  };
}

function trimEndpoints(raw: Json, interner: Interner): Json {
  const addresses = (list: unknown): Json[] =>
    objects(list).map((address) => ({
      ip: address['ip'],
      ...shared(pick(address, 'hostname', 'nodeName'), interner),
      ...target(address['targetRef'], interner),
    }));
  return {
    metadata: {
      ...meta(raw['metadata'], interner, 'deletionTimestamp'),
      ...texts('labels', object(raw['metadata'])['labels'], interner),
    },
    subsets: objects(raw['subsets']).map((subset) => ({
      addresses: addresses(subset['addresses']),
      notReadyAddresses: addresses(subset['notReadyAddresses']),
      ports: interner.value(objects(subset['ports']).map((p) => pick(p, 'name', 'port', 'protocol', 'appProtocol'))),
    })),
  };
}

function trimServiceExport(raw: Json, interner: Interner): Json {
  const { metadata } = raw;
  const { conditions } = object(raw['status']);
  return {
    metadata: {
      ...meta(metadata, interner, 'uid', 'generation', 'resourceVersion', 'creationTimestamp'),
      ...texts('labels', object(metadata)['labels'], interner, (label) => label === 'istio.io/rev'),
    },
    ...(Array.isArray(conditions) && { status: { conditions } }),
  };
}

/** Not every definition says what a field is. */
function trimServiceImport(raw: Json, interner: Interner): Json {
  const { metadata } = raw;
  const { ips, ports, ...spec } = object(raw['spec']);
  return {
    metadata: {
      ...meta(metadata, interner, 'uid', 'creationTimestamp'),
      ...texts('annotations', object(metadata)['annotations'], interner, isMeshAnnotation),
    },
    spec: {
      ...pickTexts(spec, 'type', 'internalTrafficPolicy', 'trafficDistribution'),
      ips: Array.isArray(ips) ? ips.filter((ip) => typeof ip === 'string') : [],
      ports: interner.value(
        objects(ports)
          .filter(({ port }) => typeof port === 'number')
          .map((port) => ({ ...pickTexts(port, 'name', 'protocol', 'appProtocol'), port: port['port'] })),
      ),
    },
  };
}

function pickTexts(raw: Json, ...keys: readonly string[]): Json {
  return Object.fromEntries(Object.entries(pick(raw, ...keys)).filter(([, value]) => typeof value === 'string'));
}

function meta(raw: unknown, interner: Interner, ...more: (keyof ObjectMeta)[]): Json {
  const { name, namespace } = object(raw);
  return { name, ...shared({ namespace }, interner), ...pick(object(raw), ...more) };
}

/** A map of strings under its key, or nothing if it is empty. */
function texts(key: string, raw: unknown, interner: Interner, keep: (key: string) => boolean = () => true): Json {
  const found: Json = {};
  for (const [name, value] of Object.entries(object(raw)))
    if (typeof value === 'string' && keep(name)) found[name] = interner.string(value);
  return present(key, interner.value(found));
}

function target(raw: unknown, interner: Interner): Json {
  if (!isObject(raw)) return {};
  return { targetRef: { ...shared(pick(raw, 'kind', 'namespace'), interner), ...pick(raw, 'name', 'uid') } };
}

function present(key: string, value: Json): Json {
  return Object.keys(value).length === 0 ? {} : { [key]: value };
}

function listed(key: string, value: readonly Json[], interner: Interner): Json {
  return value.length === 0 ? {} : { [key]: interner.value(value) };
}

/** The same fields, with equal values shared; absent fields stay absent. */
function shared(fields: Json, interner: Interner): Json {
  const found: Json = {};
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) found[key] = interner.value(value);
  return found;
}

function pick(raw: Json, ...keys: readonly string[]): Json {
  const found: Json = {};
  for (const key of keys) {
    const value = raw[key];
    if (value !== undefined && value !== null && Object.hasOwn(raw, key)) found[key] = value;
  }
  return found;
}

function object(raw: unknown): Json {
  return isObject(raw) ? raw : {};
}

function objects(raw: unknown): readonly Json[] {
  return Array.isArray(raw) ? raw.filter(isObject) : [];
}
