import { interceptionFlags } from '../interception/flags.ts';
import { PROXY_ID } from '../interception/options.ts';
import type { All, Read } from '../interception/option-values.ts';
import type { Annotations } from './annotations.ts';
import type { ProxySettings } from './configuration.ts';

/** What decides which connections of one Pod are intercepted. */
export interface Traffic {
  readonly annotations: Annotations;
  readonly settings: ProxySettings;
  /** Of the proxy, from the mesh config. */
  readonly outboundPort: number;
  readonly inboundPort: number;
  /** Of the agent. */
  readonly statusPort: number;
  readonly dns: boolean;
  readonly mode: string;
  /** See {@link argsOfVariables}. */
  readonly more: readonly string[];
}

/** Ports of the proxy and its agent that others ask: what asks has no certificate. */
export const PROMETHEUS_PORT = 15090;
export const HEALTH_PORT = 15021;

/**
 * Arguments for `fairlead intercept`. An annotation replaces what the mesh has. Ports of the proxy and its agent are
 * excluded in any case.
 */
export function interceptionArgs({
  annotations,
  settings,
  outboundPort,
  inboundPort,
  ...rest
}: Traffic): readonly string[] {
  const { statusPort, dns, mode, more } = rest;
  const user = String(PROXY_ID);
  const of = (name: keyof Annotations & `traffic.${string}`, fallback: string): string =>
    joined(annotations[name] as All<string | number> | undefined) ?? fallback;
  const excludedInbound = of('traffic.sidecar.istio.io/excludeInboundPorts', settings.excludeInboundPorts);
  const own = [PROMETHEUS_PORT, HEALTH_PORT, statusPort].join(',');
  const rerouted =
    joined(annotations['istio.io/reroute-virtual-interfaces']) ??
    joined(annotations['traffic.sidecar.istio.io/kubevirtInterfaces']) ??
    '';
  const optional = (flag: string, value: string): string[] => (value === '' ? [] : [flag, value]);
  return [
    ...['-p', String(outboundPort), '-z', String(inboundPort), '-u', user, '-g', user, '-m', mode],
    ...['-i', of('traffic.sidecar.istio.io/includeOutboundIPRanges', settings.includeOutboundIPRanges)],
    ...['-x', of('traffic.sidecar.istio.io/excludeOutboundIPRanges', settings.excludeOutboundIPRanges)],
    ...['-b', of('traffic.sidecar.istio.io/includeInboundPorts', settings.includeInboundPorts)],
    ...['-d', excludedInbound === '' ? own : `${own},${excludedInbound}`],
    ...optional('-q', of('traffic.sidecar.istio.io/includeOutboundPorts', settings.includeOutboundPorts)),
    ...optional('-o', of('traffic.sidecar.istio.io/excludeOutboundPorts', settings.excludeOutboundPorts)),
    ...optional('-c', of('traffic.sidecar.istio.io/excludeInterfaces', '')),
    ...optional('-k', rerouted),
    ...(dns ? ['--redirect-dns'] : []),
    ...more,
  ];
}

/**
 * Arguments in place of the proxy's variables that are about interception: what sets it up runs as root, and gets no
 * variable that somebody else than the author of its template has named.
 */
export function argsOfVariables(variables: Readonly<Record<string, string>>): Read<readonly string[]> {
  const args = variables['INVALID_DROP'] === 'true' ? ['--drop-invalid'] : [];
  for (const { flags, variable, read } of Object.values(interceptionFlags)) {
    const text = variable === undefined ? undefined : variables[variable];
    if (text === undefined) continue;
    const found: Read<unknown> = read(text);
    if ('wrong' in found) return { wrong: `variable ${variable}: ${found.wrong}` };
    args.push(flags.replace(/ .*/, ''), text);
  }
  return { value: args };
}

function joined(items: All<string | number> | undefined): string | undefined {
  return typeof items === 'object' ? items.join(',') : items;
}
