import { nameKey } from '../../api/keys.ts';
import type { Service } from '../../api/core.ts';
import type { ServiceImport } from '../../api/multicluster.ts';
import { type KubernetesObject, objectKey, parseObjectKey, refOf, sourceOfKey } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { canonicalAddress, isAddress } from '../../model/address.ts';
import { compareText } from '../../model/age.ts';
import { type ExportedService, clusterSetDomain } from '../../model/exported-service.ts';
import type { MeshService } from '../../model/service.ts';
import { mergeExports } from '../../reconcilers/multicluster/exported-service.ts';
import { type ExportCondition, exportConditions, refusals } from '../../status/export-conditions.ts';
import { type Inputs, optionsOf } from '../inputs.ts';

/** What the status of a ServiceExport should say. */
export interface ExportVerdict {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly conditions: readonly ExportCondition[];
  readonly problems: readonly Problem[];
  /** It is in another cluster, whose objects we do not write. */
  readonly isRemote: boolean;
}

export interface Exports {
  /** By `namespace/name`. */
  readonly services: Collection<ExportedService>;
  /** Services whose endpoints are for all clusters; by object. */
  readonly marks: Collection<true>;
  /** By object. */
  readonly verdicts: Collection<ExportVerdict>;
}

/** @param claims of Services; by object after `Service/`. */
export function declareExports(graph: Graph, inputs: Inputs, claims: Collection<MeshService>): Exports {
  const { objects } = inputs;
  const byName = graph.index(
    'exports by name',
    objects.ServiceExport,
    (key) => {
      const { namespace, name } = parseObjectKey(key);
      return [nameKey(namespace, name)];
    },
    (a, b) =>
      compareText(a.value.metadata.creationTimestamp ?? '', b.value.metadata.creationTimestamp ?? '') ||
      compareText(a.key, b.key),
  );
  const services = graph.derive('exportedServices', byName, (name, exports, read, emit: Emit<ExportedService>) => {
    if (!hasMulticlusterServices(read, inputs)) return;
    const found = exports.map(({ key }) => {
      const claim = read.get(claims, `Service/${key}`);
      const object = read.get(objects.Service, key) as Service | undefined;
      return { cluster: sourceOfKey(key), ...(claim && object && { of: { object, claim } }) };
    });
    emit(name, mergeExports(found));
  });
  const marks = graph.derive('exported', services, (name, { clusters }, _, emit: Emit<true>) => {
    for (const cluster of clusters) emit(`${cluster}/${name}`, true);
  });
  const verdicts = graph.derive(
    'exportVerdicts',
    objects.ServiceExport,
    (key, object, read, emit: Emit<ExportVerdict>) => {
      const { source, namespace, name } = parseObjectKey(key);
      const exported = read.get(services, nameKey(namespace, name));
      const { uid = '', generation = 0 } = object.metadata;
      const host = `${name}.${namespace}.svc.${clusterSetDomain}`;
      emit(key, {
        ...{ namespace, name, uid, generation, isRemote: source !== optionsOf(read, inputs).clusterId },
        conditions: exported === undefined ? [] : exportConditions(exported, source, host, generation),
        problems:
          exported === undefined ? [multiclusterServicesOff(source, object)] : problemsOf(exported, source, object),
      });
    },
  );
  return { services, marks, verdicts };
}

export function hasMulticlusterServices(read: Reader, inputs: Inputs): boolean {
  return optionsOf(read, inputs).multiclusterServices === true;
}

/** For files: a cluster is not even asked for such objects. */
export function multiclusterServicesOff(source: string, object: KubernetesObject): Problem {
  const message = 'has no effect, because multi-cluster services are off; set --multicluster-services=on.';
  return { object: refOf(source, object), field: 'kind', reason: 'Ineffective', message };
}

function problemsOf({ refused }: ExportedService, cluster: string, object: KubernetesObject): Problem[] {
  const reason = Object.hasOwn(refused, cluster) ? refused[cluster] : undefined;
  if (reason === undefined) return [];
  return [
    {
      object: refOf(cluster, object),
      field: 'metadata.name',
      reason: reason === 'NoService' ? 'RefNotFound' : 'Invalid',
      message: refusals[reason],
    },
  ];
}

/** ServiceImports by the addresses that they write, in their cluster and namespace. */
export function declareImportedAddresses(graph: Graph, { objects }: Inputs): Index<KubernetesObject> {
  return graph.index('imported addresses', objects.ServiceImport, (key, object) => {
    const { source, namespace } = parseObjectKey(key);
    const { ips = [] } = (object as ServiceImport).spec ?? {};
    return [...new Set(ips.filter(isAddress).map((ip) => objectKey(source, namespace, canonicalAddress(ip))))];
  });
}

/**
 * Implementations of the API have a Service of a made-up name for each ServiceImport, with its address, for clients
 * without a mesh. Proxies use the import itself.
 */
export function isStandIn(
  { name, namespace, addresses }: MeshService,
  source: string,
  read: Reader,
  importedAddresses: Index<KubernetesObject>,
): boolean {
  return addresses.some((address) =>
    read
      .group(importedAddresses, objectKey(source, namespace, address))
      .some(({ value }) => value.metadata.name !== name),
  );
}
