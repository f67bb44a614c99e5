import { RootCertificates } from '../kube/writing/root-certificates.ts';
import type { WebhookConfiguration } from '../kube/writing/webhook-configuration.ts';
import { RootDistribution } from '../other-clusters/root-distribution.ts';
import type { ClusterContext } from './cluster-context.ts';
import type { Roots } from './object-source.ts';
import { webhookConfigurations } from './webhook-configurations.ts';

/** Where the roots of the mesh are written. */
export interface ClusterRoots {
  /** Into other clusters; undefined without an authority. */
  readonly distribution: RootDistribution | undefined;
  /** Into what the own API server knows of our webhooks. */
  readonly configurations: readonly WebhookConfiguration[];
  /** Writes them into namespaces, in the own cluster and in others, until the signal fires. */
  lead(term: AbortSignal): void;
}

/** Writes the roots where Pods and API servers look for them: again when they change, and when namespaces come. */
export function keepRoots(context: ClusterContext, roots: Roots | undefined): ClusterRoots {
  const { config, engine } = context;
  const { clusterId } = config.mesh;
  const certificates = roots && certificatesOf(context, roots);
  const distribution = roots && distributionOf(context, roots);
  const namespacesChanged = (cluster: string, names: readonly string[]): void => {
    if (cluster === clusterId) certificates?.changed(names);
    else distribution?.changed(cluster, names);
  };
  engine.mesh.clusters.namespaces.onChange(namespacesChanged);
  engine.onSelection(namespacesChanged);
  const configurations = roots === undefined ? [] : webhookConfigurations(config, context, roots);
  roots?.onChange(() => {
    certificates?.changed();
    distribution?.changedAll();
    for (const configuration of configurations) configuration.changed();
  });
  if (config.statusWrites) roots?.countMissingBy((pem) => certificates?.missing(pem));
  return {
    distribution,
    configurations,
    lead(term) {
      void certificates?.lead(term);
      distribution?.lead(term);
    },
  };
}

function certificatesOf({ config, engine, ...shared }: ClusterContext, roots: Roots): RootCertificates {
  const { clusterId, rootNamespace } = config.mesh;
  const { namespaces } = engine.mesh.clusters;
  const isOurs = (name: string): boolean => !engine.objects.leavesOut(name);
  return new RootCertificates({
    ...shared,
    roots: () => roots.pem,
    rotation: { namespace: rootNamespace, text: () => roots.rotation },
    namespaces: () => namespaces.of(clusterId).filter(isOurs),
    isWanted: (name) => namespaces.get(clusterId, name) !== undefined && isOurs(name),
  });
}

function distributionOf({ config, engine }: ClusterContext, roots: Roots): RootDistribution {
  const { clusterId, rootNamespace } = config.mesh;
  const injectionWebhook = config.webhooks?.configurations.injection;
  return new RootDistribution({
    ...{ clusterId, rootNamespace, namespaces: engine.mesh.clusters.namespaces },
    roots: () => roots.pem,
    ...(injectionWebhook !== undefined && { injectionWebhook }),
  });
}
