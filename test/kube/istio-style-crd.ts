/** As Istio ships it: the list of conditions has no keys, so it is written whole, and a generation may be text. */
export const istioStyle = JSON.stringify({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gateways.networking.istio.io' },
  spec: {
    group: 'networking.istio.io',
    names: { kind: 'Gateway', listKind: 'GatewayList', plural: 'gateways', singular: 'gateway' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              status: {
                type: 'object',
                'x-kubernetes-preserve-unknown-fields': true,
                properties: {
                  conditions: {
                    type: 'array',
                    items: {
                      type: 'object',
                      properties: {
                        type: { type: 'string' },
                        status: { type: 'string' },
                        reason: { type: 'string' },
                        message: { type: 'string' },
                        observedGeneration: {
                          anyOf: [{ type: 'integer' }, { type: 'string' }],
                          'x-kubernetes-int-or-string': true,
                        },
                        lastTransitionTime: { type: 'string', format: 'date-time' },
                      },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
});
