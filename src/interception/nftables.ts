import {
  DNS_PORT,
  type Family,
  type InterceptionOptions,
  LOOPBACK,
  PASSTHROUGH,
  TUNNEL_PORT,
  familyOf,
  inFamilies,
} from './options.ts';

const TABLE = 'inet fairlead';

/**
 * The rules as input of `nft -f -`: one transaction that replaces the table as a whole, so that it can be run again.
 *
 * Order matters: the first rule that matches decides. `return` ends the chain, and the connection goes on as it would
 * without us.
 */
export function nftRuleset(options: InterceptionOptions): string {
  const chains = [
    chain('prerouting', 'type nat hook prerouting priority dstnat', inbound(options)),
    chain('output', 'type nat hook output priority -100', outbound(options)),
    chain(
      'invalid',
      'type filter hook prerouting priority mangle',
      options.dropInvalid ? ['ct state invalid drop'] : [],
    ),
    ...zones(options),
  ];
  return [
    // Deleting needs a table.
    `table ${TABLE}`,
    `delete table ${TABLE}`,
    `table ${TABLE} {`,
    ...chains.flat().map((line) => `  ${line}`),
    '}',
    '',
  ].join('\n');
}

function chain(name: string, hook: string, rules: readonly string[]): string[] {
  return rules.length === 0 ? [] : [`chain ${name} {`, `  ${hook};`, ...rules.map((rule) => `  ${rule}`), '}'];
}

/** Connections that come to the Pod. */
function inbound(options: InterceptionOptions): string[] {
  const { inboundPorts, inboundPort, outboundPort, families, reroutedInterfaces } = options;
  const rerouted = reroutedInterfaces.flatMap((name) => [
    ...destinations(options).map((where) => `iifname ${word(name)} ${where}redirect to :${outboundPort}`),
    `iifname ${word(name)} return`,
  ]);
  const excluded = set([TUNNEL_PORT, ...options.excludedInboundPorts]);
  const rules = [
    ...options.excludedInterfaces.map((name) => `iifname ${word(name)} return`),
    ...rerouted,
    ...(inboundPorts === '*'
      ? [`tcp dport ${excluded} return`, `meta l4proto tcp redirect to :${inboundPort}`]
      : inboundPorts.map((port) => `tcp dport ${port} redirect to :${inboundPort}`)),
  ];
  return rules.length === 0 ? [] : [...otherFamily(families), ...rules];
}

/** Connections that the Pod makes, and those that the proxy makes to its own workload. */
function outbound(options: InterceptionOptions): string[] {
  const { proxyUsers, proxyGroups, inboundPort, outboundPort, ownerGroups, families, dns } = options;
  const users = set(proxyUsers);
  const groups = set(proxyGroups);
  const own = set([TUNNEL_PORT, ...(dns === undefined ? [] : [53])]);
  return [
    ...otherFamily(families),
    ...options.excludedInterfaces.map((name) => `oifname ${word(name)} return`),
    ...options.excludedOutboundPorts.map((port) => `meta l4proto { tcp, udp } th dport ${port} return`),
    ...families.map((family) => `oifname lo ${family} saddr ${PASSTHROUGH[family]} return`),
    // What the proxy sends to an address of its own Pod comes in again, as if from outside.
    ...families.map(
      (family) =>
        `oifname lo meta skuid ${users} ${family} daddr != ${LOOPBACK[family]} tcp dport != ${own} redirect to :${inboundPort}`,
    ),
    // Applications of one Pod talk to each other without the proxy; but not to a name server on loopback.
    `oifname lo meta skuid != ${users} ${dns === undefined ? '' : 'tcp dport != 53 '}return`,
    `meta skuid ${users} return`,
    `meta skgid ${groups} return`,
    ...(ownerGroups === '*'
      ? options.excludedOwnerGroups.map((group) => `meta skgid ${group} return`)
      : [`${ownerGroups.length === 0 ? '' : `meta skgid != ${set(ownerGroups)} `}return`]),
    ...nameServers(options).map(
      (server) => `${server('daddr')}meta l4proto { tcp, udp } th dport 53 redirect to :${DNS_PORT}`,
    ),
    ...families.map((family) => `${family} daddr ${LOOPBACK[family]} return`),
    ...options.excludedOutboundRanges
      .filter(inFamilies(families))
      .map((range) => `${familyOf(range)} daddr ${range} return`),
    ...options.outboundPorts.map((port) => `tcp dport ${port} redirect to :${outboundPort}`),
    ...destinations(options).map((where) => `${where}redirect to :${outboundPort}`),
  ];
}

/**
 * The agent's own requests to a name server have the same addresses and ports as the redirected ones of applications
 * may have. Zones keep the kernel from taking one for the other.
 */
function zones(options: InterceptionOptions): string[][] {
  const servers = nameServers(options);
  if (servers.length === 0) return [];
  const owners = [`meta skuid ${set(options.proxyUsers)}`, `meta skgid ${set(options.proxyGroups)}`];
  return [
    chain('zones_output', 'type filter hook output priority raw', [
      ...otherFamily(options.families),
      ...owners.flatMap((owner) => [
        `${owner} udp dport 53 ct zone set 1 return`,
        `${owner} udp sport ${DNS_PORT} ct zone set 2 return`,
      ]),
      ...servers.map((server) => `${server('daddr')}udp dport 53 ct zone set 2`),
    ]),
    chain('zones_prerouting', 'type filter hook prerouting priority raw', [
      ...otherFamily(options.families),
      ...servers.map((server) => `${server('saddr')}udp sport 53 ct zone set 1`),
    ]),
  ];
}

/** Each as what matches it, as source or destination; one that matches everything for all servers. */
function nameServers({ dns, families }: InterceptionOptions): ((end: 'saddr' | 'daddr') => string)[] {
  if (dns === undefined) return [];
  if (dns === '*') return [() => ''];
  return dns.filter(inFamilies(families)).map((server) => (end) => `${familyOf(server)} ${end} ${server} `);
}

/** What matches destinations of which outgoing connections are intercepted. */
function destinations({ outboundRanges, families }: InterceptionOptions): string[] {
  if (outboundRanges === '*') return ['meta l4proto tcp '];
  return outboundRanges
    .filter(inFamilies(families))
    .map((range) => `${familyOf(range)} daddr ${range} meta l4proto tcp `);
}

function otherFamily(families: readonly Family[]): string[] {
  const names = { ip: 'ipv4', ip6: 'ipv6' } as const;
  return (['ip', 'ip6'] as const)
    .filter((one) => !families.includes(one))
    .map((one) => `meta nfproto ${names[one]} return`);
}

function set(numbers: readonly number[]): string {
  return numbers.length === 1 ? String(numbers[0]) : `{ ${[...new Set(numbers)].join(', ')} }`;
}

/** An interface; its wildcard is written as Istio's flags have it. */
function word(name: string): string {
  return `"${name.replace(/\+$/, '*')}"`;
}
