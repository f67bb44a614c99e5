import { expect, test } from 'vitest';
import { problemOfFormat } from './header-format.ts';

test.each([
  'plain',
  '',
  '%%',
  '100%% sure',
  '%REQ(x-name)%',
  '%REQ(:path?x-path):10%',
  '%REQ(a)%%REQ(b)%%%',
  'a %START_TIME(%s.%3f)% b %START_TIME%',
  '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%',
  '%PROTOCOL()%',
  '%UPSTREAM_METADATA(["a", "b"])%',
  '%DYNAMIC_METADATA(a:b:c)%',
  '%METADATA(ROUTE:istio:config)%',
  '%FILTER_STATE(a:PLAIN)%',
  '%COMMON_DURATION(DS_RX_BEG:DS_RX_END:ms)%',
  '%PATH(NQ:PATH)%',
])('Envoy understands %j', (value) => {
  expect(problemOfFormat(value, false)).toBeUndefined();
});

test.each([
  ['50%', 'does not start an Envoy command'],
  ['%', 'does not start an Envoy command'],
  ['%%%', 'does not start an Envoy command'],
  ['%req(a)%', 'does not start an Envoy command'],
  ['%REQ(a%', 'does not start an Envoy command'],
  ['%REQ(a):-1%', 'does not start an Envoy command'],
  ['%REQ(a):99999999999999999999%', 'does not start an Envoy command'],
  ['%constructor%', 'does not start an Envoy command'],
  ['%REQ%', 'needs an argument'],
  ['%REQ()%', 'needs an argument'],
  ['%REQ(a?b?c)%', 'argument that Envoy does not accept'],
  ['%REQ(a b)%', 'argument that Envoy does not accept'],
  ['%PROTOCOL(x)%', 'argument that Envoy does not accept'],
  ['%PROTOCOL:3%', 'cannot have a length'],
  ['%START_TIME(%n)%', 'argument that Envoy does not accept'],
  ['%START_TIME:3%', 'cannot have a length'],
  ['%METADATA(X)%', 'argument that Envoy does not accept'],
  ['%FILTER_STATE(a:b)%', 'argument that Envoy does not accept'],
  ['%FILTER_STATE(a:FIELD)%', 'argument that Envoy does not accept'],
  ['%FILTER_STATE(a:PLAIN:b)%', 'argument that Envoy does not accept'],
  ['%REQ(:)%', 'argument that Envoy does not accept'],
  ['%RESP(a?:)%', 'argument that Envoy does not accept'],
  ['%CEL(1 +)%', 'reject the routes of everyone'],
  ['%TYPED_CEL(request.path)%', 'reject the routes of everyone'],
  ['%COALESCE(1)%', 'crash Envoy'],
  ['%ENVIRONMENT(TOKEN)%', 'only the root namespace may'],
  ['%FOO% %REQ%', 'needs an argument'],
  ['%CLUSTER_METADATA%', 'needs an argument'],
])('Envoy refuses %j', (value, problem) => {
  expect(problemOfFormat(value, false)).toMatchObject({ reason: 'Invalid', message: expect.stringContaining(problem) });
});

test.each([
  ['%FOO%', 'not a command that Fairlead knows'],
  ['%FILE_CONTENT(/etc/passwd)%', 'not a command that Fairlead knows'],
  ['%SPAN_ID%', 'works only in the newest Envoys'],
  ['%DYNAMIC_METADATA(a):3%', 'works only in the newest Envoys'],
  ['%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(24)%', 'works only in the newest Envoys'],
])('some Envoy may understand %j', (value, problem) => {
  expect(problemOfFormat(value, false)).toMatchObject({
    reason: 'Ineffective',
    message: expect.stringContaining(problem),
  });
});

test('the root namespace may read the environment, and use what only the newest Envoy knows', () => {
  expect(problemOfFormat('%ENVIRONMENT(POD_NAME)% %SPAN_ID% %DYNAMIC_METADATA(a):3%', true)).toBeUndefined();
  expect(problemOfFormat('%CEL(request.path)%', true)).toMatchObject({ reason: 'Invalid' });
  expect(problemOfFormat('%FOO%', true)).toMatchObject({ reason: 'Ineffective' });
});
