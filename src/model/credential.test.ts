import { describe, expect, test } from 'vitest';
import type { ClientTls } from './traffic-policy.ts';
import {
  asSecret,
  clientResources,
  credentialResources,
  servedResources,
  serverResources,
  sourceOfResource,
} from './credential.ts';

const secret = (name: string, namespace = 'edge') => ({ kind: 'Secret', namespace, name });
const configMap = (name: string, namespace = 'edge') => ({ kind: 'ConfigMap', namespace, name });

test.each([
  ['site', 'kubernetes://site', 'kubernetes://site-cacert'],
  ['sds://site', 'sds://site', 'sds://site-cacert'],
  ['kubernetes://edge/site', 'kubernetes://edge/site', 'kubernetes://edge/site-cacert'],
  ['kubernetes-gateway://edge/site', 'kubernetes-gateway://edge/site', 'kubernetes-gateway://edge/site-cacert'],
])('credentialName %s', (name, pair, roots) => {
  expect(credentialResources(name)).toEqual({ pair, roots });
});

describe('a server asks for', () => {
  const ask = (mode: 'SIMPLE' | 'MUTUAL' | 'OPTIONAL_MUTUAL', roots = '', ...names: string[]) =>
    serverResources({ mode, certificates: { kind: 'credentials', names, roots } });

  test('its certificates, and whom to trust if clients have some', () => {
    expect(ask('SIMPLE', '', 'a', 'b')).toEqual({ pairs: ['kubernetes://a', 'kubernetes://b'], roots: '' });
    expect(ask('SIMPLE', 'clients', 'a')).toEqual({ pairs: ['kubernetes://a'], roots: '' });
    expect(ask('MUTUAL', '', 'a', 'b')).toMatchObject({ roots: 'kubernetes://a-cacert' });
  });

  test('whom to trust from where it is said to be', () => {
    expect(ask('MUTUAL', 'clients', 'a')).toMatchObject({ roots: 'kubernetes://clients-cacert' });
    expect(ask('MUTUAL', 'clients-cacert', 'a')).toMatchObject({ roots: 'kubernetes://clients-cacert' });
    expect(ask('OPTIONAL_MUTUAL', 'configmap://edge/clients', 'a')).toMatchObject({
      roots: 'configmap://edge/clients',
    });
  });
});

test('a client asks for whom to trust, and for a certificate if it presents one', () => {
  const ask = (mode: 'SIMPLE' | 'MUTUAL' | 'ISTIO_MUTUAL', credentialName: string, insecureSkipVerify = false) =>
    clientResources({ mode, credentialName, caCredentialName: '', insecureSkipVerify } as ClientTls);
  const [pair, roots] = ['kubernetes://a', 'kubernetes://a-cacert'];
  expect(ask('SIMPLE', 'a')).toEqual({ pairs: [], roots });
  expect(ask('MUTUAL', 'a')).toEqual({ pairs: [pair], roots });
  expect(ask('MUTUAL', 'a', true)).toEqual({ pairs: [pair], roots: '' });
  expect(ask('MUTUAL', '')).toEqual({ pairs: [], roots: '' });
  expect(ask('ISTIO_MUTUAL', 'a')).toEqual({ pairs: [], roots: '' });
});

test('a client asks for whom to trust from where it is said to be', () => {
  const ask = (mode: 'SIMPLE' | 'MUTUAL', credentialName: string, caCredentialName: string) =>
    clientResources({ mode, credentialName, caCredentialName, insecureSkipVerify: false } as ClientTls);
  expect(ask('SIMPLE', '', 'b')).toEqual({ pairs: [], roots: 'kubernetes://b-cacert' });
  expect(ask('MUTUAL', 'a', 'configmap://b')).toEqual({ pairs: ['kubernetes://a'], roots: 'configmap://b' });
  expect(ask('MUTUAL', '', 'b-cacert')).toEqual({ pairs: [], roots: 'kubernetes://b-cacert' });
});

test.each([
  ['sds://site', 'pair', 'kubernetes://site'],
  ['sds://site-cacert', 'roots', 'kubernetes://site-cacert'],
  ['sds://site', 'roots', 'kubernetes://site-cacert'],
  ['sds://configmap://edge/site', 'roots', 'configmap://edge/site'],
  ['kubernetes://site', 'pair', 'kubernetes://site'],
] as const)('without a provider, %s as %s is %s', (resource, part, secret) => {
  expect(asSecret(resource, part)).toBe(secret);
});

test('the control plane serves what no provider has', () => {
  const resources = { pairs: ['sds://a', 'kubernetes://b'], roots: 'sds://a-cacert' };
  expect(servedResources(resources, true)).toEqual(['kubernetes://b']);
  expect(servedResources(resources, false)).toEqual(['kubernetes://a', 'kubernetes://b', 'kubernetes://a-cacert']);
});

describe('a resource comes from', () => {
  test.each([
    ['kubernetes://site', 'pair', [secret('site')]],
    ['kubernetes://edge/site', 'pair', [secret('site')]],
    ['kubernetes-gateway://edge/site.example', 'pair', [secret('site.example')]],
    ['kubernetes://site-cacert', 'roots', [secret('site-cacert'), secret('site')]],
    ['kubernetes://-cacert', 'none', []],
    ['configmap://other/roots', 'roots', [configMap('roots', 'other')]],
    ['configmap://roots-cacert', 'roots', [configMap('roots')]],
  ])('%s', (resource, part, objects) => {
    const source = sourceOfResource(resource, 'edge');
    if (part === 'none') expect(source).toHaveProperty('problem');
    else expect(source).toEqual({ part, objects });
  });

  test('another namespace is not where the proxies run', () => {
    expect(sourceOfResource('kubernetes://bank/site', 'edge')).toMatchObject({ isForeign: true });
    expect(sourceOfResource('kubernetes-gateway://bank/site', 'edge')).toMatchObject({ isForeign: true });
  });

  test.each([
    'site',
    'default',
    'ROOTCA',
    'kubernetes://',
    'kubernetes:///site',
    'kubernetes://edge/',
    'kubernetes://../site',
    'kubernetes://edge/../site',
    'kubernetes://edge/site/more',
    'kubernetes://Edge',
    'kubernetes://a b',
    'kubernetes://a\n',
    'kubernetes://\uFFFD',
    `kubernetes://${'a'.repeat(254)}`,
    'file://etc/passwd',
    'sds://site',
  ])('nowhere: %j', (resource) => {
    expect(sourceOfResource(resource, 'edge')).toEqual({ problem: 'is not the name of a Secret' });
  });
});
