import type { AuthorizationStep, Authorizer } from '../../model/authorization.ts';
import { duration } from '../duration.ts';
import { constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import type {
  Filter,
  GrpcService,
  HttpExtAuthz,
  HttpFilter,
  ListStringMatcher,
  MetadataMatcher,
} from '../gen/types.gen.ts';

type External = NonNullable<AuthorizationStep['external']>;

/** Asks a service about a request. */
export function httpExtAuthz({ service }: External, enabled: MetadataMatcher): HttpFilter {
  const { authorizer, host, cluster } = service;
  const { statusOnError, includeRequestBody: body } = authorizer;
  const message: HttpExtAuthz = {
    transportApiVersion: 'V3',
    filterEnabledMetadata: enabled,
    ...(authorizer.failOpen ? { failureModeAllow: true } : {}),
    ...(authorizer.clearRouteCache ? { clearRouteCache: true } : {}),
    ...(statusOnError === undefined ? {} : { statusOnError: { code: statusOnError as never } }),
    ...(body === undefined ? {} : { withRequestBody: body }),
    ...(authorizer.includeRequestHeaders.length === 0
      ? {}
      : { allowedHeaders: headerNames(authorizer.includeRequestHeaders) }),
    ...(authorizer.protocol === 'grpc'
      ? { grpcService: grpcService(service) }
      : {
          httpService: {
            serverUri: { uri: `http://${host}`, cluster, timeout: duration(authorizer.timeout) },
            ...(authorizer.pathPrefix === '' ? {} : { pathPrefix: authorizer.pathPrefix }),
            ...requestHeaders(authorizer),
            ...responseHeaders(authorizer),
          },
        }),
  };
  return { name: 'envoy.filters.http.ext_authz', typedConfig: constantAny(types.extAuthz, message) };
}

/** Asks a service about a connection. Only a gRPC service can be asked. */
export function networkExtAuthz({ service }: External, enabled: MetadataMatcher, statPrefix: string): Filter {
  const { failOpen } = service.authorizer;
  return {
    name: 'envoy.filters.network.ext_authz',
    typedConfig: constantAny(types.networkExtAuthz, {
      statPrefix,
      transportApiVersion: 'V3',
      filterEnabledMetadata: enabled,
      ...(failOpen ? { failureModeAllow: true } : {}),
      grpcService: grpcService(service),
    }),
  };
}

function grpcService({ authorizer, host, cluster }: External['service']): GrpcService {
  return { envoyGrpc: { clusterName: cluster, authority: host }, timeout: duration(authorizer.timeout) };
}

function requestHeaders({ additionalHeaders }: Authorizer) {
  if (additionalHeaders.length === 0) return {};
  const headersToAdd = additionalHeaders.map(({ name, value }) => ({ key: name, value }));
  return { authorizationRequest: { headersToAdd } };
}

function responseHeaders(authorizer: Authorizer) {
  const lists = {
    allowedUpstreamHeaders: authorizer.headersToUpstreamOnAllow,
    allowedClientHeaders: authorizer.headersToDownstreamOnDeny,
    allowedClientHeadersOnSuccess: authorizer.headersToDownstreamOnAllow,
  };
  const set = Object.entries(lists).filter(([, names]) => names.length > 0);
  if (set.length === 0) return {};
  return { authorizationResponse: Object.fromEntries(set.map(([field, names]) => [field, headerNames(names)])) };
}

/** A name matches in any case; `x-*` and `*-x` by beginning or end. */
function headerNames(names: readonly string[]): ListStringMatcher {
  const pattern = (name: string) => {
    if (name.startsWith('*')) return { suffix: name.slice(1) };
    if (name.endsWith('*')) return { prefix: name.slice(0, -1) };
    return { exact: name };
  };
  return { patterns: names.map((name) => ({ ...pattern(name), ignoreCase: true })) };
}
