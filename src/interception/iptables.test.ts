import { describe, expect, test } from 'vitest';
import { iptablesRules } from './iptables.ts';
import { defaultInterception, type InterceptionOptions } from './options.ts';

const rules = (options: Partial<InterceptionOptions>, saved = ''): string =>
  iptablesRules({ ...defaultInterception, ...options }, 'ip', saved);

const all = { dns: ['10.96.0.10'], dropInvalid: true } as const;

describe('the input of iptables-restore', () => {
  test('has no table without rules', () => {
    expect(rules({})).not.toMatch(/^\*(mangle|raw)$/m);
    expect(rules(all)).toMatch(/^\*mangle$[^]*^\*raw$/m);
  });

  test('empties chains of an earlier run that had more rules', () => {
    const again = rules({}, rules(all));
    expect(again).toMatch(/^\*mangle\n:ISTIO_DROP - \[0:0\]\nCOMMIT$/m);
    expect(again).toMatch(/^\*raw\n:ISTIO_DNS_OUT - \[0:0\]\n:ISTIO_DNS_IN - \[0:0\]\nCOMMIT$/m);
  });

  test('leads to a chain once, however often it is applied', () => {
    expect(rules(all)).toContain('-A PREROUTING -j ISTIO_DROP\n');
    expect(rules(all, rules(all))).not.toMatch(/^-A (PREROUTING|OUTPUT)/m);
  });
});
