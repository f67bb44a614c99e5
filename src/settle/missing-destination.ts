import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { quote } from '../api/quote.ts';
import type { DestinationTarget } from '../model/client.ts';
import type { Destination } from '../model/route.ts';
import { parseOutboundCluster } from '../model/service.ts';

/** Reports a destination that does not resolve. A service that merely has no endpoints is not reported. */
export function missingDestination(object: ObjectRef, destination: Destination, target: DestinationTarget): Problem[] {
  if (target.kind === 'cluster' || target.what === 'endpoints') return [];
  const message = `${explain(target.what, target.cluster, destination)} Until then requests for it get a 503.`;
  return [{ object, field: `${destination.field}.${target.what}`, reason: 'RefNotFound', message }];
}

function explain(what: 'host' | 'port' | 'subset', cluster: string, { host, subset, port }: Destination): string {
  const named = parseOutboundCluster(cluster);
  switch (what) {
    case 'host':
      // The host of a Service of type ExternalName is where it leads.
      return named.host === host
        ? `${quote(host)} does not exist or is not exported to the client; create or export it, or correct the name.`
        : `${quote(host)} leads to ${quote(named.host)}, which is not in the mesh; create a ServiceEntry for that host, or correct externalName.`;
    case 'port':
      if (port === undefined && named.port === '0') return `${quote(host)} has no single port; name one that it has.`;
      return port === undefined
        ? `${quote(host)} has no port ${named.port}, the port the request arrived on; name a port that it has.`
        : `${quote(host)} has no port ${port}; name a port that it has.`;
    case 'subset':
      return `${quote(subset)} is not a subset of ${quote(host)}; define it in a DestinationRule for that host that is visible to the client.`;
  }
}
