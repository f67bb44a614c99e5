import { expect, test } from 'vitest';
import { testProtos } from '../../../test/harness/mesh.ts';
import type { AuthorizationStep, Authorizer, NamedRule } from '../../model/authorization.ts';
import type { Any } from '../gen/types.gen.ts';
import { typeOfUrl } from '../encode/proto.ts';
import { authorizationFilters, networkAuthorizationFilters } from './authorization.ts';

const agent = { agent: true };
const object = { source: 's', group: 'g', kind: 'AuthorizationPolicy', namespace: 'n', name: 'p' };
const rule = (name: string): NamedRule => ({
  name,
  source: { object, field: '' },
  isWide: false,
  permissions: [[]],
  principals: [[]],
});
const matched = {
  permissions: [{ andRules: { rules: [{ any: true }] } }],
  principals: [{ andIds: { ids: [{ any: true }] } }],
};

/** As Envoy reads it. */
const json = ({ typedConfig }: { readonly typedConfig?: Any | undefined }) => {
  const { typeUrl, value } = typedConfig!;
  const type = typeOfUrl(typeUrl!);
  return testProtos().toJson(type, testProtos().encode(type, value as object));
};

test.each<[AuthorizationStep, object]>([
  [
    { action: 'ALLOW', policies: [], enforced: [], shadowPrefix: 'p' },
    { rules: {}, shadowRulesStatPrefix: 'p' },
  ],
  [
    { action: 'DENY', policies: [], enforced: [rule('a')], shadowPrefix: 'p' },
    { rules: { action: 'DENY', policies: { a: matched } }, shadowRulesStatPrefix: 'p' },
  ],
  [
    { action: 'LOG', policies: [], shadow: [rule('a'), rule('b')], shadowPrefix: '' },
    { shadowRules: { action: 'LOG', policies: { a: matched, b: matched } } },
  ],
])('%j is a filter for requests, and one for connections', (step, expected) => {
  const [http, ...others] = authorizationFilters([step], agent);
  const [network, ...more] = networkAuthorizationFilters([step], agent);
  expect([...others, ...more]).toEqual([]);
  expect(http!.name).toBe('envoy.filters.http.rbac');
  expect(json(http!)).toEqual(expected);
  expect(network!.name).toBe('envoy.filters.network.rbac');
  expect(json(network!)).toEqual({ ...expected, statPrefix: 'tcp.' });
});

const authorizer: Authorizer = {
  name: 'p',
  protocol: 'http',
  service: 'authz.example.com',
  port: 8000,
  timeout: 600_000,
  failOpen: false,
  statusOnError: undefined,
  pathPrefix: '',
  includeRequestHeaders: [],
  additionalHeaders: [],
  headersToUpstreamOnAllow: [],
  headersToDownstreamOnDeny: [],
  headersToDownstreamOnAllow: [],
  includeRequestBody: undefined,
};

const asks = (more: Partial<Authorizer>): AuthorizationStep => ({
  action: 'DENY',
  policies: [],
  shadow: [rule('istio-ext-authz-p-a')],
  shadowPrefix: 'istio_ext_authz_',
  external: {
    service: {
      authorizer: { ...authorizer, ...more },
      host: 'authz.example.com',
      cluster: 'outbound|8000||authz.example.com',
    },
    ruleNames: 'istio-ext-authz-p',
  },
});

const cluster = 'outbound|8000||authz.example.com';
const enabled = (filter: string) => ({
  filter,
  path: [{ key: 'istio_ext_authz_shadow_effective_policy_id' }],
  value: { stringMatch: { prefix: 'istio-ext-authz-p' } },
});
const both = { transportApiVersion: 'V3', filterEnabledMetadata: enabled('envoy.filters.http.rbac') };
const httpService = {
  serverUri: { uri: 'http://authz.example.com', cluster, timeout: '600s' },
};
const patterns = (...some: object[]) => ({ patterns: some.map((one) => ({ ...one, ignoreCase: true })) });
const names = ['a', 'x-*', '*-y'];
const ofNames = patterns({ exact: 'a' }, { prefix: 'x-' }, { suffix: '-y' });

test.each<[Partial<Authorizer>, object]>([
  [{}, { httpService }],
  [{ timeout: 1_500 }, { httpService: { serverUri: { ...httpService.serverUri, timeout: '1.500s' } } }],
  [{ failOpen: true }, { httpService, failureModeAllow: true }],
  [{ statusOnError: 503 }, { httpService, statusOnError: { code: 'ServiceUnavailable' } }],
  [{ pathPrefix: '/check' }, { httpService: { ...httpService, pathPrefix: '/check' } }],
  [{ includeRequestHeaders: names }, { httpService, allowedHeaders: ofNames }],
  [
    { additionalHeaders: [{ name: 'a', value: 'b' }] },
    { httpService: { ...httpService, authorizationRequest: { headersToAdd: [{ key: 'a', value: 'b' }] } } },
  ],
  [
    { headersToUpstreamOnAllow: names },
    { httpService: { ...httpService, authorizationResponse: { allowedUpstreamHeaders: ofNames } } },
  ],
  [
    { headersToDownstreamOnDeny: ['a'], headersToDownstreamOnAllow: ['b'] },
    {
      httpService: {
        ...httpService,
        authorizationResponse: {
          allowedClientHeaders: patterns({ exact: 'a' }),
          allowedClientHeadersOnSuccess: patterns({ exact: 'b' }),
        },
      },
    },
  ],
  [
    { includeRequestBody: { maxRequestBytes: 10, allowPartialMessage: true, packAsBytes: true } },
    { httpService, withRequestBody: { maxRequestBytes: 10, allowPartialMessage: true, packAsBytes: true } },
  ],
  [
    { protocol: 'grpc', timeout: 1_000, failOpen: true, statusOnError: 500 },
    {
      grpcService: { envoyGrpc: { clusterName: cluster, authority: 'authz.example.com' }, timeout: '1s' },
      failureModeAllow: true,
      statusOnError: { code: 'InternalServerError' },
    },
  ],
])('a service is asked about requests: %j', (more, expected) => {
  const [rbac, extAuthz, ...others] = authorizationFilters([asks(more)], agent);
  expect(others).toEqual([]);
  expect(json(rbac!)).toEqual({
    shadowRules: { action: 'DENY', policies: { 'istio-ext-authz-p-a': matched } },
    shadowRulesStatPrefix: 'istio_ext_authz_',
  });
  expect(extAuthz!.name).toBe('envoy.filters.http.ext_authz');
  expect(json(extAuthz!)).toEqual({ ...both, ...expected });
});

test('a service is asked about connections', () => {
  const [rbac, extAuthz, ...others] = networkAuthorizationFilters([asks({ protocol: 'grpc', failOpen: true })], agent);
  expect(others).toEqual([]);
  expect(rbac!.name).toBe('envoy.filters.network.rbac');
  expect(extAuthz!.name).toBe('envoy.filters.network.ext_authz');
  expect(json(extAuthz!)).toEqual({
    statPrefix: 'tcp.',
    transportApiVersion: 'V3',
    filterEnabledMetadata: enabled('envoy.filters.network.rbac'),
    failureModeAllow: true,
    grpcService: { envoyGrpc: { clusterName: cluster, authority: 'authz.example.com' }, timeout: '600s' },
  });
});
