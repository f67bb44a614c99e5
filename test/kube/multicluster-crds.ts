/** Definitions of the Multi-Cluster Services API, in some of its versions; the last one is stored. */
export function multiclusterCrds(...versions: readonly string[]): string {
  const items = [
    definition('ServiceExport', 'serviceexports', versions),
    definition('ServiceImport', 'serviceimports', versions),
  ];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

export const GROUP = 'multicluster.x-k8s.io';

function definition(kind: string, plural: string, versions: readonly string[]): object {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    // Without this annotation, no definition may be in a group of Kubernetes.
    metadata: { name: `${plural}.${GROUP}`, annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' } },
    spec: {
      group: GROUP,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      scope: 'Namespaced',
      versions: versions.map((name, i) => ({
        name,
        served: true,
        storage: i === versions.length - 1,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
      })),
    },
  };
}

const spec = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

const status = {
  type: 'object',
  properties: {
    conditions: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: {
        type: 'object',
        required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
        properties: {
          type: { type: 'string', maxLength: 316 },
          status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
          // As the API server checks conditions elsewhere: several reasons are separated by commas.
          reason: { type: 'string', pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$', maxLength: 1024 },
          message: { type: 'string', maxLength: 32768 },
          observedGeneration: { type: 'integer', format: 'int64', minimum: 0 },
          lastTransitionTime: { type: 'string', format: 'date-time' },
        },
      },
    },
  },
};
