import type { LeafPart } from '../../ads/store/resource.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import { stemOf } from '../../settle/domains.ts';
import type { ScopeViews } from '../clients/scopes.ts';
import { type HostPlace, isOwnTable } from '../clients/routes-of-view.ts';
import type { VirtualHostEntry } from './virtual-hosts.ts';

/** A domain that a virtual host must not have in the tables of a list, because another virtual host has it. */
export interface DoubledDomain {
  /** `list|table` */
  readonly piece: string;
  /** Keys of virtual hosts. */
  readonly loser: string;
  readonly winner: string;
  readonly domain: string;
  /** Both have the same name, too: the loser is removed as a whole. */
  readonly sameHost: boolean;
}

/**
 * Domains that two virtual hosts of one table have. There are none: `clients/free-domains.ts` gives each domain to one host.
 * But Envoy would reject such a table as a whole. If there is one after all, one of the two hosts loses it before the
 * table is sent, and the bug is reported. By `list|table`.
 *
 * Nothing looks at whole tables. Virtual hosts that may share a domain are in one index group; nearly all groups have a
 * single host, so there is nothing to compare.
 */
export function declareDoubledDomains(
  graph: Graph,
  virtualHosts: readonly Collection<VirtualHostEntry>[],
  scopesByView: Index<ScopeViews>,
): Index<DoubledDomain> {
  const byStem = graph.index('virtual hosts by stem', virtualHosts, (_, { place: { table, domains } }) =>
    isOwnTable(table) ? [] : [...new Set(domains.map((domain) => `${table}|${stemOf(domain)}`))],
  );
  const doubled = graph.derive('doubledDomains', byStem, (_, members, read, emit: Emit<DoubledDomain>) => {
    const ownerOf = ({ namespace, host }: HostPlace): string => `${namespace}/${host}`;
    const first = ownerOf(members[0].value.place);
    // It is there once per view of its namespace, and a table has only one of these.
    if (members.every(({ value: { place } }) => ownerOf(place) === first)) return;
    const domains = members.flatMap(({ key, value: { place } }) =>
      place.domains.map((domain) => ({ key, place, domain })),
    );
    for (const [domain, claims] of Map.groupBy(domains, (claim) => claim.domain))
      for (const [i, { key: loser, place }] of claims.entries()) {
        const winner = claims
          .slice(0, i)
          .find(
            (earlier) => ownerOf(earlier.place) !== ownerOf(place) && canMeet(earlier.place, place, read, scopesByView),
          );
        if (winner !== undefined)
          emit(`${loser}|${domain}`, {
            piece: `${place.list}|${place.table}`,
            loser,
            winner: winner.key,
            domain,
            sameHost: winner.place.host === place.host,
          });
      }
  });
  graph.derive('doubledDomains.reports', doubled, (_, { loser, winner, domain }) => {
    throw new Error(`the virtual hosts ${winner} and ${loser} both have the domain ${domain}`);
  });
  return graph.index('doubled domains by piece', doubled, (_, { piece }) => [piece]);
}

/** Whether some proxy has both in one table. */
function canMeet(a: HostPlace, b: HostPlace, read: Reader, scopesByView: Index<ScopeViews>): boolean {
  return read.group(scopesByView, a.view.key).some(({ value: { outlets, local } }) => {
    const has = ({ view, local: isLocal }: HostPlace): boolean => isLocal === (view.key === local);
    const keys = outlets.map(({ views }) => new Set(views.map((view) => view.key)));
    return has(a) && has(b) && keys.some((own) => own.has(a.view.key) && own.has(b.view.key));
  });
}

/** The virtual host without the domains that it lost; undefined if nothing is left. */
export function withoutDomains(part: LeafPart, lost: readonly DoubledDomain[], encoder: Encoder): LeafPart | undefined {
  if (lost.some(({ sameHost }) => sameHost)) return undefined;
  return encoder.withDomains(part, (domain) => !lost.some((other) => other.domain === domain));
}
