import { expect, test } from 'vitest';
import { appAddress } from './app-address.ts';

const NONE = { ISTIO_META_INTERCEPTION_MODE: 'NONE' };
const LOCAL = { REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: 'true' };

test.each([
  ['past the rules of interception', 'sidecar', '10.0.0.7', {}, { host: '10.0.0.7', from: '127.0.0.6' }],
  ['likewise by IPv6', 'sidecar', 'fd00::7', {}, { host: 'fd00::7', from: '::6' }],
  ['from anywhere if nothing is intercepted', 'sidecar', '10.0.0.7', NONE, { host: '10.0.0.7', from: undefined }],
  ['from anywhere in a gateway', 'router', '10.0.0.7', {}, { host: '10.0.0.7', from: undefined }],
  ['on loopback if asked to', 'sidecar', '10.0.0.7', LOCAL, { host: '127.0.0.1', from: '127.0.0.6' }],
  ['on loopback by IPv6', 'sidecar', 'fd00::7', { ...LOCAL, ...NONE }, { host: '::1', from: undefined }],
] as const)('the application is asked %s', (_, type, address, env, expected) => {
  const pod = { name: '', namespace: '', serviceAccount: '', labels: {}, annotations: {}, addresses: [address] };
  expect(appAddress({ type, env, pod })).toEqual(expected);
});
