import { expect, test } from 'vitest';
import { parseResolvConf } from './resolv-conf.ts';

test('name servers and the last search list are read, and what is not understood is ignored', () => {
  const text = `
# comment
search old.example.com
nameserver 10.96.0.10
nameserver fe80::1%eth0 ; of the node
nameserver ns.example.com
nameserver
options ndots:5
	search shop.svc.cluster.local svc.cluster.local
nameserver 1.1.1.1
nameserver 8.8.8.8
`;
  expect(parseResolvConf(text)).toEqual({
    servers: ['10.96.0.10', 'fe80::1%eth0', '1.1.1.1'],
    search: ['shop.svc.cluster.local', 'svc.cluster.local'],
  });
  expect(parseResolvConf('domain a.com b.com')).toEqual({ servers: [], search: ['a.com'] });
  expect(parseResolvConf('')).toEqual({ servers: [], search: [] });
});
