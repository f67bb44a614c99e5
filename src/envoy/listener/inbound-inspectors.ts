import { listenerFilters } from './filters.ts';
import type { FilterChain, ListenerFilter, ListenerFilterChainMatchPredicate } from '../gen/types.gen.ts';
import { PLAINTEXT_HTTP, TLS } from './listener.ts';

interface Needs {
  tls: boolean;
  http: boolean;
}

/** The filters that detect what inbound chains match on, disabled for ports whose chains do not need them. */
export function inboundInspectors(chains: readonly FilterChain[]): ListenerFilter[] {
  /** By destination port; 0: all others. */
  const needs = new Map<number, Needs>();
  for (const { filterChainMatch: match } of chains) {
    const port = match?.destinationPort?.value ?? 0;
    const found = needs.get(port) ?? { tls: false, http: false };
    found.tls ||= match?.transportProtocol === TLS;
    found.http ||= match?.applicationProtocols?.some((protocol) => PLAINTEXT_HTTP.includes(protocol)) ?? false;
    needs.set(port, found);
  }
  const ports = (test: (need: Needs) => boolean): number[] =>
    [...needs].filter(([, need]) => test(need)).map(([port]) => port);
  const filters: ListenerFilter[] = [];
  const tls = ports((need) => need.tls);
  if (tls.length > 0) {
    // If all other ports need it, it is disabled for some ports; otherwise it is enabled for some.
    const disabled = tls.includes(0)
      ? onPorts(ports((need) => !need.tls))
      : { notMatch: onPorts(tls) ?? { anyMatch: true } };
    filters.push(disabledOn(listenerFilters.tlsInspector, disabled));
  }
  if (ports((need) => need.http).length > 0)
    filters.push(disabledOn(listenerFilters.httpInspector, onPorts(ports((need) => !need.http))));
  return filters;
}

function disabledOn(filter: ListenerFilter, predicate: ListenerFilterChainMatchPredicate | undefined): ListenerFilter {
  return predicate === undefined ? filter : { ...filter, filterDisabled: predicate };
}

function onPorts(ports: readonly number[]): ListenerFilterChainMatchPredicate | undefined {
  const rules = [...ports]
    .sort((a, b) => a - b)
    .map((port): ListenerFilterChainMatchPredicate => ({ destinationPortRange: { start: port, end: port + 1 } }));
  return rules.length > 1 ? { orMatch: { rules } } : rules[0];
}
