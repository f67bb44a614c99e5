import { isIP } from 'node:net';
import type { InboundTarget } from '../../model/inbound.ts';
import type { ListenerSettings } from '../../model/mesh-config.ts';
import { inboundCluster } from '../../model/service.ts';
import type { PeerModes } from '../../model/peer-authentication.ts';
import { type Traits, wildcardAddress } from '../../model/traits.ts';
import { listenerAccessLogs } from './access-log.ts';
import { duration } from '../duration.ts';
import { listenerFilters } from './filters.ts';
import { blackHoleCluster, inboundPassthroughCluster } from '../../model/cluster-names.ts';
import type { FilterChain, Listener, ListenerFilter } from '../gen/types.gen.ts';
import { type InboundContext, buildInboundChains, passthroughChains } from './inbound-chains.ts';
import { inboundInspectors } from './inbound-inspectors.ts';
import { listenerAddress, realListener, redirectedAddresses } from './listener.ts';
import { blackHoleFilter } from './outbound-filters.ts';
import type { BuiltListener } from './outbound-listener.ts';
import type { SecurityFilters } from '../security/authorization.ts';

export interface InboundInput {
  readonly targets: readonly InboundTarget[];
  readonly traits: Traits;
  /** Addresses of the proxy. Only the ports of a Sidecar's ingress use them. */
  readonly addresses: readonly string[];
  readonly settings: ListenerSettings;
  readonly mtls: PeerModes;
  readonly security: SecurityFilters;
}

/**
 * The inbound listeners of a sidecar: the one that receives redirected connections, and those that a Sidecar's ingress
 * binds.
 */
export function buildInbound(input: InboundInput): readonly BuiltListener[] {
  const { traits, settings } = input;
  if (settings.proxyListenPort <= 0) return [];
  const context: InboundContext = input;
  const wildcard = wildcardAddress(traits);
  const redirected: { chains: readonly FilterChain[]; target: InboundTarget }[] = [];
  const bound: BuiltListener[] = [];
  for (const target of input.targets) {
    const bind = bindOf(target, input, wildcard);
    const toPort = traits.interception === 'NONE' || target.ingress?.bindToPort === true;
    if (target.port === 0 || isReserved(target, toPort, input)) continue;
    const chains = buildInboundChains(target, bind, context);
    // Nothing may connect to the port. Envoy rejects a listener without chains.
    if (chains.length === 0) continue;
    if (toPort) bound.push(boundListener(target, bind, chains, context));
    else redirected.push({ chains, target });
  }
  if (traits.interception === 'NONE') return bound;
  return [virtualInbound(redirected, wildcard, input, context), ...bound];
}

/** Ingress listeners are named after their bind address, or else the address of the workload. */
function bindOf({ ingress }: InboundTarget, { addresses }: InboundInput, wildcard: string): string {
  if (ingress === undefined) return wildcard;
  return ingress.bind || addresses.find(isGlobalUnicast) || wildcard;
}

function isGlobalUnicast(address: string): boolean {
  if (isIP(address) === 0) return false;
  return isIP(address) === 4
    ? !/^(0\.0\.0\.0$|127\.|169\.254\.|22[4-9]\.|23\d\.|255\.255\.255\.255$)/.test(address)
    : !/^(::1?$|fe[89ab]|ff)/i.test(address);
}

function isReserved(target: InboundTarget, toPort: boolean, { traits, settings }: InboundInput): boolean {
  const { port, ingress } = target;
  if (toPort && traits.unprivileged && port < 1024) return true;
  if (ingress !== undefined && ingress.bind !== '') return false;
  if (traits.reservedPorts.includes(port) || port === settings.proxyInboundListenPort) return true;
  return ingress === undefined && port === settings.proxyListenPort;
}

function virtualInbound(
  redirected: readonly { readonly chains: readonly FilterChain[]; readonly target: InboundTarget }[],
  wildcard: string,
  { targets }: InboundInput,
  context: InboundContext,
): BuiltListener {
  const { traits, settings } = context;
  const port = settings.proxyInboundListenPort;
  const transparent = traits.interception === 'TPROXY';
  const passthrough = passthroughChains(new Set(targets.map((target) => target.port)), context);
  const chains: FilterChain[] = [
    {
      name: 'virtualInbound-blackhole',
      filterChainMatch: { destinationPort: { value: port } },
      filters: [blackHoleFilter],
    },
    ...passthrough,
    ...redirected.flatMap((one) => one.chains),
  ];
  const first: ListenerFilter[] = [listenerFilters.originalDst];
  if (transparent) first.push(listenerFilters.originalSrc);
  const listener: Listener = {
    ...common('virtualInbound', wildcard, port, chains, first, context),
    ...redirectedAddresses(traits, port),
    ...(transparent ? { transparent: { value: true } } : {}),
  };
  const served = redirected.map(({ target }) => target);
  return {
    listener,
    clusters: [
      blackHoleCluster,
      ...(passthrough.length === 0 ? [] : [inboundPassthroughCluster]),
      ...served.map((target) => inboundCluster(target.port)),
      ...(chains.length === 1 ? [] : context.security.clusters),
    ],
  };
}

function boundListener(
  target: InboundTarget,
  bind: string,
  chains: readonly FilterChain[],
  context: InboundContext,
): BuiltListener {
  return {
    listener: common(`${bind}_${target.port}`, bind, target.port, chains, [], context),
    clusters: [inboundCluster(target.port), ...context.security.clusters],
  };
}

function common(
  name: string,
  address: string,
  port: number,
  chains: readonly FilterChain[],
  first: readonly ListenerFilter[],
  context: InboundContext,
): Listener {
  const { traits, settings } = context;
  const logs = listenerAccessLogs(settings);
  const inspectors = [...first, ...inboundInspectors(chains)];
  return {
    name,
    address: listenerAddress(address, port),
    trafficDirection: 'INBOUND',
    continueOnListenerFiltersTimeout: true,
    ...realListener,
    ...(traits.inboundExactBalance ? { connectionBalanceConfig: { exactBalance: {} } } : {}),
    ...(logs.length === 0 ? {} : { accessLog: logs }),
    filterChains: chains,
    ...(inspectors.length === 0 ? {} : { listenerFilters: inspectors }),
    listenerFiltersTimeout: duration(settings.protocolDetectionTimeout),
  };
}
