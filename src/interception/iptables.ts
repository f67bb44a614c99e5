import {
  DNS_PORT,
  type Family,
  type InterceptionOptions,
  LOOPBACK,
  PASSTHROUGH,
  TUNNEL_PORT,
  inFamilies,
} from './options.ts';

/** What is there of an earlier run, as `iptables-save` prints it: chains of ours, and rules that lead to them. */
const OURS = /^(?::(?<chain>ISTIO_\w+) .*|-A (?:PREROUTING|OUTPUT) .*-j ISTIO_\w+)$/;

/** Names of our chains begin so; other tools for such Pods know them by these names. */
type Chain = `ISTIO_${string}`;

/**
 * The same rules as input of `iptables-restore --noflush` (of `ip6tables-restore` for that family), for images without
 * nft. Declaring a chain empties it, so a chain in `saved`, the output of `iptables-save`, is declared even if it gets no
 * rule now. The rules that lead to it from the kernel's own chains are left out if `saved` has them.
 */
export function iptablesRules(options: InterceptionOptions, family: Family, saved: string): string {
  const there = new Set(
    saved.split('\n').flatMap((line) => {
      const found = OURS.exec(line);
      return found === null ? [] : [found.groups?.['chain'] ?? line];
    }),
  );
  const all = { ...options, families: [family] };
  return [
    table('nat', there, ['-A PREROUTING -p tcp -j ISTIO_INBOUND', '-A OUTPUT -j ISTIO_OUTPUT'], {
      ISTIO_INBOUND: inbound(all, family),
      ISTIO_OUTPUT: outbound(all, family),
      ISTIO_REDIRECT: [`-p tcp -j REDIRECT --to-ports ${options.outboundPort}`],
      ISTIO_IN_REDIRECT: [`-p tcp -j REDIRECT --to-ports ${options.inboundPort}`],
    }),
    table('mangle', there, ['-A PREROUTING -j ISTIO_DROP'], {
      ISTIO_DROP: options.dropInvalid ? ['-m conntrack --ctstate INVALID -j DROP'] : [],
    }),
    table('raw', there, ['-A PREROUTING -j ISTIO_DNS_IN', '-A OUTPUT -j ISTIO_DNS_OUT'], zones(all)),
  ].join('');
}

/** A table with no rule is left out, unless it had some. `there`: chains and hooks of an earlier run. */
function table(
  name: string,
  there: ReadonlySet<string>,
  hooks: readonly string[],
  chains: Readonly<Record<Chain, readonly string[]>>,
): string {
  const entries = Object.entries(chains);
  const isEmpty = entries.every(([, rules]) => rules.length === 0);
  if (isEmpty && !entries.some(([chain]) => there.has(chain))) return '';
  return [
    `*${name}`,
    ...entries.map(([chain]) => `:${chain} - [0:0]`),
    ...(isEmpty ? [] : hooks.filter((hook) => !there.has(hook))),
    ...entries.flatMap(([chain, rules]) => rules.map((rule) => `-A ${chain} ${rule}`)),
    'COMMIT',
    '',
  ].join('\n');
}

function inbound(options: InterceptionOptions, family: Family): string[] {
  const { inboundPorts, excludedInboundPorts, reroutedInterfaces } = options;
  return [
    ...options.excludedInterfaces.map((name) => `-i ${name} -j RETURN`),
    ...reroutedInterfaces.flatMap((name) => [
      ...destinations(options, family).map((where) => `-i ${name}${where} -j ISTIO_REDIRECT`),
      `-i ${name} -j RETURN`,
    ]),
    ...(inboundPorts === '*'
      ? [
          ...[TUNNEL_PORT, ...excludedInboundPorts].map((port) => `-p tcp --dport ${port} -j RETURN`),
          '-p tcp -j ISTIO_IN_REDIRECT',
        ]
      : inboundPorts.map((port) => `-p tcp --dport ${port} -j ISTIO_IN_REDIRECT`)),
  ];
}

function outbound(options: InterceptionOptions, family: Family): string[] {
  const { proxyUsers, proxyGroups, ownerGroups, dns } = options;
  const loopback = host(LOOPBACK[family], family);
  // A match has one port to except, or fifteen.
  const own = dns === undefined ? `! --dport ${TUNNEL_PORT}` : `-m multiport ! --dports ${TUNNEL_PORT},53`;
  const both = (match: string): string[] => ['tcp', 'udp'].map((protocol) => `-p ${protocol} ${match}`);
  return [
    ...options.excludedInterfaces.map((name) => `-o ${name} -j RETURN`),
    ...options.excludedOutboundPorts.flatMap((port) => both(`--dport ${port} -j RETURN`)),
    `-o lo -s ${host(PASSTHROUGH[family], family)} -j RETURN`,
    ...proxyUsers.map(
      (user) => `-o lo ! -d ${loopback} -p tcp ${own} -m owner --uid-owner ${user} -j ISTIO_IN_REDIRECT`,
    ),
    `-o lo${dns === undefined ? '' : ' -p tcp ! --dport 53'}${others('uid', proxyUsers)} -j RETURN`,
    ...proxyUsers.map((user) => `-m owner --uid-owner ${user} -j RETURN`),
    ...proxyGroups.map((group) => `-m owner --gid-owner ${group} -j RETURN`),
    ...(ownerGroups === '*'
      ? options.excludedOwnerGroups.map((group) => `-m owner --gid-owner ${group} -j RETURN`)
      : [`${others('gid', ownerGroups).trimStart()} -j RETURN`.trimStart()]),
    ...nameServers(options, family).flatMap((server) =>
      both(`--dport 53${server('-d')} -j REDIRECT --to-ports ${DNS_PORT}`),
    ),
    `-d ${loopback} -j RETURN`,
    ...options.excludedOutboundRanges.filter(inFamilies([family])).map((range) => `-d ${range} -j RETURN`),
    ...options.outboundPorts.map((port) => `-p tcp --dport ${port} -j ISTIO_REDIRECT`),
    ...destinations(options, family).map((where) => `-p tcp${where} -j ISTIO_REDIRECT`),
  ];
}

function zones(options: InterceptionOptions): Readonly<Record<Chain, readonly string[]>> {
  const [family = 'ip'] = options.families;
  const servers = nameServers(options, family);
  const owners = [
    ...options.proxyUsers.map((user) => `-m owner --uid-owner ${user}`),
    ...options.proxyGroups.map((group) => `-m owner --gid-owner ${group}`),
  ];
  if (servers.length === 0) return { ISTIO_DNS_OUT: [], ISTIO_DNS_IN: [] };
  return {
    ISTIO_DNS_OUT: [
      ...owners.flatMap((owner) => [
        `-p udp --dport 53 ${owner} -j CT --zone 1`,
        `-p udp --sport ${DNS_PORT} ${owner} -j CT --zone 2`,
        // The first zone stays.
        `-p udp --dport 53 ${owner} -j RETURN`,
      ]),
      ...servers.map((server) => `-p udp --dport 53${server('-d')} -j CT --zone 2`),
    ],
    ISTIO_DNS_IN: servers.map((server) => `-p udp --sport 53${server('-s')} -j CT --zone 1`),
  };
}

function nameServers({ dns }: InterceptionOptions, family: Family): ((end: '-s' | '-d') => string)[] {
  if (dns === undefined) return [];
  if (dns === '*') return [() => ''];
  return dns.filter(inFamilies([family])).map((server) => (end) => ` ${end} ${host(server, family)}`);
}

function destinations({ outboundRanges }: InterceptionOptions, family: Family): string[] {
  if (outboundRanges === '*') return [''];
  return outboundRanges.filter(inFamilies([family])).map((range) => ` -d ${range}`);
}

function others(kind: 'uid' | 'gid', ids: readonly number[]): string {
  return ids.map((id) => ` -m owner ! --${kind}-owner ${id}`).join('');
}

function host(address: string, family: Family): string {
  return `${address}/${family === 'ip' ? 32 : 128}`;
}
