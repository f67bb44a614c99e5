import { isIP } from 'node:net';
import type { All } from './option-values.ts';

export type Family = 'ip' | 'ip6';

/** Which connections of a Pod pass its proxy. Rules are made in its network namespace before anything else runs. */
export interface InterceptionOptions {
  /** Of the proxy: where connections of applications arrive, and those that come to them. */
  readonly outboundPort: number;
  readonly inboundPort: number;
  /** Users and groups whose connections are the proxy's own. */
  readonly proxyUsers: readonly number[];
  readonly proxyGroups: readonly number[];
  /** Ports whose incoming connections are intercepted, and those of `*` that are not. */
  readonly inboundPorts: All<number>;
  readonly excludedInboundPorts: readonly number[];
  /** Destinations of outgoing connections that are intercepted, and those of them that are not. */
  readonly outboundRanges: All<string>;
  readonly excludedOutboundRanges: readonly string[];
  /** Ports of outgoing connections that are intercepted whatever the destination, and those that never are. */
  readonly outboundPorts: readonly number[];
  readonly excludedOutboundPorts: readonly number[];
  /** Interfaces whose traffic is left alone. */
  readonly excludedInterfaces: readonly string[];
  /** Interfaces behind which something else runs, such as a virtual machine: what comes from there is outgoing. */
  readonly reroutedInterfaces: readonly string[];
  /** Groups whose connections are intercepted, and those of `*` whose are not. */
  readonly ownerGroups: All<number>;
  readonly excludedOwnerGroups: readonly number[];
  /** Drop packets that belong to no connection, instead of letting the kernel answer with a reset. */
  readonly dropInvalid: boolean;
  /** Requests to name servers that the agent answers: those to the Pod's own servers, or to any. Undefined: none. */
  readonly dns: All<string> | undefined;
  /** What the proxy listens on; the other family is left alone. */
  readonly families: readonly Family[];
}

/** Where the agent answers requests for names. */
export const DNS_PORT = 15053;

/** Connections to it are the mesh's own tunnels (HBONE). */
export const TUNNEL_PORT = 15008;

/** The proxy's connections to its own workload come from here, and must not return to the proxy. */
export const PASSTHROUGH: Readonly<Record<Family, string>> = { ip: '127.0.0.6', ip6: '::6' };

export const LOOPBACK: Readonly<Record<Family, string>> = { ip: '127.0.0.1', ip6: '::1' };

export const PROXY_ID = 1337;

/** What Istio's flags mean by default, before any port is excluded. */
export const defaultInterception: InterceptionOptions = {
  outboundPort: 15001,
  inboundPort: 15006,
  proxyUsers: [PROXY_ID],
  proxyGroups: [PROXY_ID],
  inboundPorts: '*',
  excludedInboundPorts: [],
  outboundRanges: '*',
  excludedOutboundRanges: [],
  outboundPorts: [],
  excludedOutboundPorts: [],
  excludedInterfaces: [],
  reroutedInterfaces: [],
  ownerGroups: '*',
  excludedOwnerGroups: [],
  dropInvalid: false,
  dns: undefined,
  families: ['ip', 'ip6'],
};

/** Which of addresses and CIDRs the rules of these families can name. */
export const inFamilies =
  (families: readonly Family[]) =>
  (range: string): boolean =>
    families.includes(familyOf(range));

export function familyOf(range: string): Family {
  return isIP(range.split('/')[0] ?? '') === 6 ? 'ip6' : 'ip';
}
