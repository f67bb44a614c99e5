import { expect, test } from 'vitest';
import { proxyFor } from './proxy.ts';

const HTTPS_PROXY = 'http://proxy:3128';

test.each<[string, Record<string, string>, string | undefined]>([
  ['https://api.example.com', {}, undefined],
  ['https://api.example.com', { HTTPS_PROXY }, HTTPS_PROXY],
  ['https://api.example.com', { https_proxy: 'http://lower', HTTPS_PROXY: '' }, 'http://lower'],
  ['https://api.example.com', { HTTPS_PROXY: 'proxy:3128' }, 'http://proxy:3128'],
  ['https://api.example.com', { HTTP_PROXY: 'http://plain' }, undefined],
  ['http://api.example.com', { HTTP_PROXY: 'http://plain', HTTPS_PROXY }, 'http://plain'],
  ['https://localhost:6443', { HTTPS_PROXY }, undefined],
  ['https://127.8.9.1:6443', { HTTPS_PROXY }, undefined],
  ['https://[::1]:6443', { HTTPS_PROXY }, undefined],
  ['https://api.example.com', { HTTPS_PROXY, NO_PROXY: '*' }, undefined],
  ['https://api.example.com', { HTTPS_PROXY, NO_PROXY: 'other.com, Example.com' }, undefined],
  ['https://API.example.com.', { HTTPS_PROXY, no_proxy: '.example.com' }, undefined],
  ['https://api.example.com', { HTTPS_PROXY, NO_PROXY: '*.example.com' }, undefined],
  ['https://example.com', { HTTPS_PROXY, NO_PROXY: '.example.com' }, HTTPS_PROXY],
  ['https://notexample.com', { HTTPS_PROXY, NO_PROXY: 'example.com' }, HTTPS_PROXY],
  ['https://example.com', { HTTPS_PROXY, NO_PROXY: 'example.com:443' }, undefined],
  ['https://example.com:6443', { HTTPS_PROXY, NO_PROXY: 'example.com:443' }, HTTPS_PROXY],
  ['https://10.96.0.1', { HTTPS_PROXY, NO_PROXY: '10.0.0.0/8' }, undefined],
  ['https://10.96.0.1', { HTTPS_PROXY, NO_PROXY: '10.0.0.0/16,192.168.0.0/16' }, HTTPS_PROXY],
  ['https://10.96.0.1', { HTTPS_PROXY, NO_PROXY: '10.96.0.1' }, undefined],
  ['https://10.96.0.1', { HTTPS_PROXY, NO_PROXY: '10.96.0.1:6443' }, HTTPS_PROXY],
  ['https://[fd00::7]:6443', { HTTPS_PROXY, NO_PROXY: 'fd00::/64' }, undefined],
  ['https://[fd00::7]:6443', { HTTPS_PROXY, NO_PROXY: '[fd00::7]:6443' }, undefined],
  ['https://10.96.0.1', { HTTPS_PROXY, NO_PROXY: '10.0.0.0/99,/,:,x/8' }, HTTPS_PROXY],
])('%s with %o goes through %s', (server, env, proxy) => {
  expect(proxyFor(server, env)).toBe(proxy);
});

test.each(['ftp://proxy', 'http://', 'a b'])('%s is refused, and the variable named', (value) => {
  expect(() => proxyFor('https://api', { HTTPS_PROXY: value })).toThrow('HTTPS_PROXY is not the URL of');
});
