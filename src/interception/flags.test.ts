import { expect, test } from 'vitest';
import { type InterceptionRequest, readInterception } from './flags.ts';
import { iptablesRules } from './iptables.ts';
import { nftRuleset } from './nftables.ts';
import { type InterceptionOptions, defaultInterception } from './options.ts';
import { nameServersOf } from './resolv-conf.ts';

const request: InterceptionRequest = {
  texts: {},
  mode: 'REDIRECT',
  dropInvalid: false,
  dns: 'off',
  servers: ['10.96.0.10'],
  families: ['ip', 'ip6'],
};

test('without flags, the rules are the twelve of the default', () => {
  expect(readInterception(request)).toEqual({ options: defaultInterception });
  const rules = nftRuleset(defaultInterception)
    .split('\n')
    .filter((line) => /^ {4}/.test(line) && !line.includes('hook'));
  expect(rules).toHaveLength(12);
});

test('every flag that is wrong is named, with what to write', () => {
  const texts = { outboundPort: 'x', inboundPorts: '80;', outboundRanges: '10/8', proxyUsers: 'root' };
  expect(readInterception({ ...request, texts, mode: 'TPROXY' })).toEqual({
    problems: [
      expect.stringMatching(/^--envoy-port: "x" is not a port/),
      expect.stringMatching(/^--istio-inbound-ports: "80;" .*"8080,9090"/),
      expect.stringMatching(/^--istio-service-cidr: "10\/8" .*"10.96.0.0\/12/),
      expect.stringMatching(/^--proxy-uid: "root" .*"1337"/),
      '--istio-inbound-interception-mode: TPROXY is not supported; use REDIRECT or NONE',
    ],
  });
});

test.each([
  ['off', undefined],
  ['servers', ['10.96.0.10']],
  ['all', '*'],
] as const)('requests for names are captured: %s', (dns, expected) => {
  expect(readInterception({ ...request, dns })).toHaveProperty('options.dns', expected);
});

test('the mode NONE has no options', () => {
  expect(readInterception({ ...request, mode: 'NONE' })).toEqual({ options: undefined });
});

const full: InterceptionOptions = {
  ...defaultInterception,
  dns: ['10.96.0.10', 'fd00::10'],
  dropInvalid: true,
  outboundRanges: ['10.0.0.0/8', 'fd00::/8'],
};

test('each family has only addresses of its own', () => {
  expect(iptablesRules(full, 'ip', '')).not.toContain('fd00');
  expect(iptablesRules(full, 'ip6', '')).not.toContain('10.');
  expect(nftRuleset({ ...full, families: ['ip'] })).not.toContain('fd00');
});

test('iptables: rules that lead to ours are not added twice', () => {
  const rules = iptablesRules(full, 'ip', '');
  const hooks = rules.split('\n').filter((line) => /^-A (PREROUTING|OUTPUT) /.test(line));
  expect(hooks).toHaveLength(5);
  const again = iptablesRules(full, 'ip', `*nat\n${hooks.join('\n')}\nCOMMIT\n`);
  expect(again.split('\n').filter((line) => hooks.includes(line))).toEqual([]);
  expect(again.split('\n').length).toBe(rules.split('\n').length - hooks.length);
});

test('name servers are read from a resolv.conf as the resolver does', () => {
  const text = '# x\nsearch a b\nnameserver 10.0.0.1\n nameserver\tfe80::1%eth0 \nnameserver x\nnameserver 10.0.0.1\n';
  expect(nameServersOf(text)).toEqual(['10.0.0.1', 'fe80::1']);
  const four = [1, 2, 3, 4].map((n) => `nameserver 10.0.0.${n}\n`).join('');
  expect(nameServersOf(four)).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3']);
});
