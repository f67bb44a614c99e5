import type { ServiceImport } from '../api/multicluster.ts';
import { parseObjectKey } from '../api/object.ts';
import type { Mesh } from '../mesh.ts';
import { compareText } from '../model/age.ts';
import { clusterSetDomain } from '../model/exported-service.ts';

/** ServiceExports and ServiceImports by cluster and name, as `/debug/mcsz` of Istio shows them. */
export function* multiclusterServices(
  { inputs, services, clusters }: Pick<Mesh, 'inputs' | 'services' | 'clusters'>,
  domainSuffix: string,
): Generator<object> {
  const { ServiceExport: exports, ServiceImport: imports } = inputs.objects;
  const keys = new Set([...exports.entries(), ...imports.entries()].map(([key]) => key));
  for (const key of [...keys].sort(compareText)) {
    const { source, namespace, name } = parseObjectKey(key);
    const imported = imports.get(key) as ServiceImport | undefined;
    const hosts = [domainSuffix, clusterSetDomain].map((domain) => `${name}.${namespace}.svc.${domain}`);
    const known = hosts.flatMap((host) => services.get(`${namespace}/${host}`) ?? []);
    yield {
      Cluster: source,
      Name: name,
      Namespace: namespace,
      Exported: exports.get(key) !== undefined,
      Imported: imported !== undefined,
      ClusterSetVIP: imported?.spec?.ips?.[0] ?? '',
      Discoverability:
        exports.get(key) === undefined
          ? null
          : Object.fromEntries(
              known.map((service) => [
                service.host,
                (clusters.sharedBy(service) ?? [source]).includes(source)
                  ? 'AlwaysDiscoverable'
                  : 'DiscoverableFromSameCluster',
              ]),
            ),
    };
  }
}
