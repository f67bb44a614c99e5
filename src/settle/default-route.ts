import type { RouteSettings } from '../model/mesh-config.ts';
import { hashKeyOf } from '../model/policy-resolution.ts';
import { wholeObjects } from '../model/provenance.ts';
import { type RouteRule, precedence } from '../model/route.ts';
import { type MeshService, outboundCluster } from '../model/service.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';

export interface DefaultRouteInput {
  readonly service: Pick<MeshService, 'host' | 'origins'>;
  readonly port: number;
  /** The service's rule. */
  readonly rule?: DestinationRuleModel | undefined;
  /** False: the service has no cluster. */
  readonly served: boolean;
  readonly settings: RouteSettings;
}

/** Where requests for a service go if no VirtualService routes them: to the service itself. */
export function settleDefaultRoute({ service, port, rule, served, settings }: DefaultRouteInput): RouteRule {
  const { host } = service;
  const hash = hashKeyOf(rule, '', port);
  const retries = settings.defaultHttpRetryPolicy;
  return {
    name: 'default',
    owner: undefined,
    sources: wholeObjects([...service.origins, ...(hash === undefined ? [] : (rule?.origins ?? []))]),
    matches: [],
    precedence: precedence.asWritten,
    operation: `${host}:${port}`,
    action: {
      kind: 'forward',
      backends: [
        {
          target: served
            ? { kind: 'cluster', cluster: outboundCluster(port, '', host) }
            : { kind: 'invalid', reason: 'endpoints' },
          ...(hash && { hash }),
        },
      ],
      mirrors: [],
      ...(retries && { retries }),
      // Unlike in a VirtualService's routes, a hash does not stop retries from using other endpoints.
      retriesStay: false,
    },
  };
}
