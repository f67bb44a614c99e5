import { defaultInterception, type Family, type InterceptionOptions } from './options.ts';
import {
  type Read,
  readIds,
  readIdsOrAll,
  readInterfaces,
  readPort,
  readPorts,
  readPortsOrAll,
  readRanges,
  readRangesOrAll,
} from './option-values.ts';

/** Options that are read from one text each. */
type Texts = Omit<InterceptionOptions, 'dns' | 'families' | 'dropInvalid'>;

interface Flag<T> {
  /** As `istio-iptables` has them, so that commands written for it keep working. */
  readonly flags: string;
  readonly help: string;
  /** Used where the flag is not given. */
  readonly variable?: string;
  readonly read: (text: string) => Read<T>;
}

type Flags = { readonly [K in keyof Texts]: Flag<Texts[K]> };

export const interceptionFlags: Flags = {
  outboundPort: {
    flags: '-p, --envoy-port <port>',
    help: "the proxy's port for connections that applications make",
    read: readPort,
  },
  inboundPort: {
    flags: '-z, --inbound-capture-port <port>',
    help: "the proxy's port for connections that come to applications",
    read: readPort,
  },
  proxyUsers: { flags: '-u, --proxy-uid <uid,...>', help: 'users whose connections are left alone', read: readIds },
  proxyGroups: { flags: '-g, --proxy-gid <gid,...>', help: 'groups whose connections are left alone', read: readIds },
  inboundPorts: {
    flags: '-b, --istio-inbound-ports <port,...>',
    help: 'ports whose incoming connections are intercepted; *: all, empty: none',
    read: readPortsOrAll,
  },
  excludedInboundPorts: {
    flags: '-d, --istio-local-exclude-ports <port,...>',
    help: 'ports whose incoming connections are not intercepted, with -b "*"',
    read: readPorts,
  },
  outboundRanges: {
    flags: '-i, --istio-service-cidr <range,...>',
    help: 'destinations whose connections are intercepted; *: all, empty: none',
    read: readRangesOrAll,
  },
  excludedOutboundRanges: {
    flags: '-x, --istio-service-exclude-cidr <range,...>',
    help: 'destinations whose connections are not intercepted',
    read: readRanges,
  },
  outboundPorts: {
    flags: '-q, --istio-outbound-ports <port,...>',
    help: 'ports of outgoing connections that are intercepted whatever the destination',
    read: readPorts,
  },
  excludedOutboundPorts: {
    flags: '-o, --istio-local-outbound-ports-exclude <port,...>',
    help: 'ports of outgoing connections that are not intercepted',
    read: readPorts,
  },
  excludedInterfaces: {
    flags: '-c, --istio-exclude-interfaces <name,...>',
    help: 'network interfaces whose traffic is left alone',
    read: readInterfaces,
  },
  reroutedInterfaces: {
    flags: '-k, --kube-virt-interfaces <name,...>',
    help: 'network interfaces of virtual machines: what they send is outgoing',
    read: readInterfaces,
  },
  ownerGroups: {
    flags: '--owner-groups <gid,...>',
    help: 'groups whose connections are intercepted; *: all',
    variable: 'ISTIO_OUTBOUND_OWNER_GROUPS',
    read: readIdsOrAll,
  },
  excludedOwnerGroups: {
    flags: '--owner-groups-exclude <gid,...>',
    help: 'groups whose connections are not intercepted',
    variable: 'ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE',
    read: readIds,
  },
};

export interface InterceptionRequest {
  /** By the names of {@link interceptionFlags}. */
  readonly texts: Readonly<Partial<Record<keyof Texts, string>>>;
  readonly mode: string;
  readonly dropInvalid: boolean;
  /** Whether the agent answers requests for names: those to `servers`, or all. */
  readonly dns: 'off' | 'servers' | 'all';
  /** The Pod's name servers. */
  readonly servers: readonly string[];
  readonly families: readonly Family[];
}

/** Undefined options: nothing is to be intercepted. Otherwise the sentences say which flag is wrong. */
export function readInterception(
  request: InterceptionRequest,
): { readonly options: InterceptionOptions | undefined } | { readonly problems: readonly string[] } {
  const problems: string[] = [];
  const found: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(request.texts)) {
    const flag: Flag<unknown> = interceptionFlags[name as keyof Texts];
    const read = flag.read(text);
    if ('wrong' in read) problems.push(`${longName(flag)}: ${read.wrong}`);
    else found[name] = read.value;
  }
  const { mode, dropInvalid, dns, servers, families } = request;
  if (mode !== 'REDIRECT' && mode !== 'NONE')
    problems.push(`--istio-inbound-interception-mode: ${mode} is not supported; use REDIRECT or NONE`);
  if (problems.length > 0) return { problems };
  if (mode === 'NONE') return { options: undefined };
  return {
    options: {
      ...defaultInterception,
      ...(found as Partial<Texts>),
      dropInvalid,
      dns: dns === 'off' ? undefined : dns === 'all' ? '*' : servers,
      families,
    },
  };
}

function longName({ flags }: Flag<unknown>): string {
  return /--[\w-]+/.exec(flags)?.[0] ?? flags;
}
