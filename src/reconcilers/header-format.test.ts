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
  '%DYNAMIC_METADATA(a:b:c):3%',
  '%METADATA(ROUTE:istio:config)%',
  '%FILTER_STATE(a:PLAIN)%',
  '%COMMON_DURATION(DS_RX_BEG:DS_RX_END:ms)%',
  '%PATH(NQ:PATH)%',
])('Envoy understands %j', (value) => {
  expect(problemOfFormat(value)).toBeUndefined();
});

test.each([
  ['50%', 'starts no Envoy command'],
  ['%', 'starts no Envoy command'],
  ['%%%', 'starts no Envoy command'],
  ['%req(a)%', 'starts no Envoy command'],
  ['%REQ(a%', 'starts no Envoy command'],
  ['%REQ(a):-1%', 'starts no Envoy command'],
  ['%REQ(a):99999999999999999999%', 'starts no Envoy command'],
  ['%FOO%', '"%FOO%" is no command of Envoy'],
  ['%constructor%', 'starts no Envoy command'],
  ['%REQ%', 'needs an argument'],
  ['%REQ()%', 'needs an argument'],
  ['%REQ(a?b?c)%', 'argument that Envoy does not take'],
  ['%REQ(a b)%', 'argument that Envoy does not take'],
  ['%PROTOCOL(x)%', 'argument that Envoy does not take'],
  ['%PROTOCOL:3%', 'cannot have a length'],
  ['%START_TIME(%n)%', 'argument that Envoy does not take'],
  ['%START_TIME:3%', 'cannot have a length'],
  ['%METADATA(X)%', 'argument that Envoy does not take'],
  ['%FILTER_STATE(a:b)%', 'argument that Envoy does not take'],
  ['%CLUSTER_METADATA%', 'needs an argument'],
])('Envoy refuses %j', (value, problem) => {
  expect(problemOfFormat(value)).toContain(problem);
});
