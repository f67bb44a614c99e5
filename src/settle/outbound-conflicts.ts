import { canonicalCidr, parseCidr } from '../model/cidr.ts';
import type {
  AgedClaim,
  Bind,
  HttpClaim,
  L4Chain,
  L4Claim,
  ListenerClaim,
  ListenerConflict,
  OutboundChain,
  ResolvedListener,
} from '../model/listener.ts';
import { type Protocol, protocolClass } from '../model/service.ts';

/**
 * Resolves the claims of one listener, oldest first: earlier claims stay, later ones get what is left. HTTP and other
 * protocols share a port by sniffing. Undefined if there are no claims.
 */
export function resolveClaims(claims: readonly RankedClaim[], wildcard: string): ResolvedListener | undefined {
  let entry: Entry | undefined;
  const conflicts: ListenerConflict[] = [];
  for (const claim of yielding(claims, wildcard, conflicts)) {
    if (claim.kind === 'http') entry = addHttp(entry, claim, wildcard);
    else entry = addL4(entry, claim, conflicts);
  }
  if (entry === undefined) return undefined;
  return { bind: entry.bind, port: entry.port, chains: entry.taken.chains, conflicts };
}

type RankedClaim = Pick<AgedClaim, 'rank' | 'claim'>;

/**
 * On all addresses, a claim that needs a port to itself gives way to claims that share it: it can get its own address,
 * and HTTP cannot. Otherwise, one ServiceEntry for MySQL on port 80 would take that port from everything that comes
 * later.
 */
function yielding(
  claims: readonly RankedClaim[],
  wildcard: string,
  conflicts: ListenerConflict[],
): readonly ListenerClaim[] {
  const sharing = claims.filter(({ claim }) => sharesPort(claim));
  const rank = Math.min(...sharing.map((one) => one.rank));
  return claims.flatMap((one) => {
    const { claim } = one;
    if (claim.kind === 'http' || !isServerFirst(claim.protocol)) return [claim];
    if (one.rank < rank || claim.bind.addresses[0] !== wildcard) return [claim];
    const [winner] = sharing.map((other) => ('host' in other.claim ? other.claim.host : ''));
    conflicts.push({ loser: claim, winner: winner ?? '' });
    return [];
  });
}

/** HTTP, or connections with a server name or range. */
function sharesPort(claim: ListenerClaim): boolean {
  if (claim.kind !== 'tcp') return true;
  return (
    !isServerFirst(claim.protocol) &&
    claim.chains.some(({ serverNames, subnets }) => serverNames.length > 0 || subnets.length > 0)
  );
}

interface Entry {
  readonly bind: Bind;
  readonly port: number;
  /** `Unsupported` as soon as HTTP and other protocols meet. */
  readonly protocol: Protocol;
  readonly taken: TakenMatches;
}

function addHttp(entry: Entry | undefined, claim: HttpClaim, wildcard: string): Entry {
  const sniffs = !claim.proxy && claim.bind.addresses[0] === wildcard;
  const chain = httpChain(claim, sniffs);
  if (entry === undefined || claim.proxy) {
    const taken = new TakenMatches();
    taken.add(chain, '');
    const protocol = claim.proxy ? 'HTTP_PROXY' : sniffs ? 'Unsupported' : 'HTTP';
    return { bind: claim.bind, port: claim.port, protocol, taken };
  }
  if (protocolClass(entry.protocol) !== 'tcp' || isServerFirst(entry.protocol)) return entry;
  entry.taken.add(chain, '');
  return { ...entry, protocol: 'Unsupported' };
}

function addL4(entry: Entry | undefined, claim: L4Claim, conflicts: ListenerConflict[]): Entry {
  if (entry !== undefined && keepsAlone(claim.protocol, entry.protocol)) {
    conflicts.push({ loser: claim, winner: entry.taken.oldest });
    return entry;
  }
  const existing = entry === undefined ? undefined : protocolClass(entry.protocol);
  const chains = claim.chains.map(l4Chain);
  if (claim.kind === 'sniffed' && existing !== 'sniffed')
    chains.push(httpChain({ routes: claim.routes, grpcWeb: false }, true));
  const replaces = claim.kind === 'sniffed' && existing === 'http';
  const taken = entry === undefined || replaces ? new TakenMatches() : entry.taken;
  let winner: string | undefined;
  for (const chain of chains) {
    const by = taken.add(chain, claim.host);
    winner ??= by;
  }
  if (winner !== undefined) conflicts.push({ loser: claim, winner });
  if (entry === undefined || replaces) return { bind: claim.bind, port: claim.port, protocol: claim.protocol, taken };
  const mixes = existing !== 'sniffed' && existing !== claim.kind;
  return mixes ? { ...entry, protocol: 'Unsupported' } : entry;
}

/**
 * In these protocols the server speaks first, so a sniffing listener would wait for a client that is itself waiting.
 */
function isServerFirst(protocol: Protocol): boolean {
  return protocol === 'Mongo' || protocol === 'MySQL';
}

function keepsAlone(incoming: Protocol, existing: Protocol): boolean {
  return incoming !== existing && (isServerFirst(incoming) || isServerFirst(existing));
}

function httpChain(
  claim: Pick<HttpClaim, 'routes' | 'grpcWeb' | 'dynamicHost'>,
  plaintextHttp: boolean,
): OutboundChain {
  return { serverNames: [], subnets: [], plaintextHttp, serves: { kind: 'http', claim } };
}

function l4Chain(chain: L4Chain): OutboundChain {
  return {
    // Envoy rejects a listener with a wildcard for part of a label.
    serverNames: chain.serverNames.filter((name) => !/^\*[^.]/.test(name)),
    subnets: distinctRanges(chain.subnets),
    plaintextHttp: false,
    serves: { kind: 'l4', chain },
  };
}

/** A range that starts at the wildcard address means any address. Envoy rejects a chain with duplicate ranges. */
function distinctRanges(subnets: readonly string[]): readonly string[] {
  const ranges = new Map<string, string>();
  for (const subnet of subnets) {
    const cidr = parseCidr(subnet);
    const key = canonicalCidr(subnet);
    if (cidr !== undefined && cidr.address !== '0.0.0.0' && !ranges.has(key)) ranges.set(key, subnet);
  }
  return [...ranges.values()];
}

/**
 * The chains of a listener. Envoy rejects a listener in which two chains match the same thing, so a newcomer loses the
 * server names and ranges that are taken.
 */
class TakenMatches {
  readonly chains: OutboundChain[] = [];
  private readonly taken = new Map<string, string>();

  /** Host of the first chain. */
  get oldest(): string {
    const [host = ''] = this.taken.values();
    return host;
  }

  /** Adds the part of a chain that is free. Returns the host that owns the rest, if any. */
  add(chain: OutboundChain, host: string): string | undefined {
    const { serves } = chain;
    // Envoy would have rejected all of its names.
    if (serves.kind === 'l4' && serves.chain.serverNames.length > 0 && chain.serverNames.length === 0) return undefined;
    const names = namesOf(chain);
    const subnets = subnetsOf(chain);
    const takenBy = (name: string, subnet: string) => this.taken.get(atom(chain, name, subnet));
    let winner: string | undefined;
    for (const name of names) for (const subnet of subnets) winner ??= takenBy(name, subnet);
    if (winner === undefined) {
      this.take(chain, host);
      return undefined;
    }
    const free = subnets.filter((subnet) => names.some((name) => takenBy(name, subnet) === undefined));
    const left = names.filter((name) => free.every((subnet) => takenBy(name, subnet) === undefined));
    if (left.length > 0 && free.length > 0)
      this.take({ ...chain, serverNames: left.includes('') ? [] : left, subnets: free.includes('') ? [] : free }, host);
    return winner;
  }

  private take(chain: OutboundChain, host: string): void {
    this.chains.push(chain);
    for (const name of namesOf(chain))
      for (const subnet of subnetsOf(chain)) this.taken.set(atom(chain, name, subnet), host);
  }
}

function atom(chain: OutboundChain, name: string, subnet: string): string {
  return `${chain.plaintextHttp ? 'http' : ''} ${name.toLowerCase()} ${subnet === '' ? '' : canonicalCidr(subnet)}`;
}

/** `''` means any. */
function namesOf(chain: OutboundChain): readonly string[] {
  return chain.serverNames.length === 0 || chain.serverNames.includes('*') ? [''] : chain.serverNames;
}

function subnetsOf(chain: OutboundChain): readonly string[] {
  return chain.subnets.length === 0 ? [''] : chain.subnets;
}
