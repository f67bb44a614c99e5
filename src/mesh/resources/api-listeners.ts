import type { Emit, Graph } from '../../cache/graph.ts';
import { apiListener } from '../../envoy/listener/api-listener.ts';
import { isAddress } from '../../model/address.ts';
import { isWildcard } from '../../model/host.ts';
import { wholeObjects } from '../../model/provenance.ts';
import { isRouted, outboundCluster } from '../../model/service.ts';
import { freeDomains } from '../clients/free-domains.ts';
import { clientOf } from '../clients/lookups.ts';
import { optionsOf } from '../inputs.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import type { PortDeps } from '../clients/served-ports.ts';
import type { RouteDeps } from './virtual-hosts.ts';

/** What gRPC's own clients can dial: each name of a service, with each of its ports. */
export function declareApiListeners(graph: Graph, deps: RouteDeps & PortDeps): Members {
  return graph.derive(
    'apiListeners',
    deps.views.serviceViews,
    (_, { list, view, service: key, ports }, read, emit: Emit<Member>) => {
      if (view.traits.family !== 'grpc') return;
      const service = read.get(deps.services.services, key);
      if (service === undefined || isWildcard(service.host)) return;
      const client = clientOf(view, optionsOf(read, deps.inputs).domainSuffix);
      const from = () => wholeObjects(service.origins);
      for (const port of service.ports) {
        if (!ports.includes(port.number) || !isRouted(port.protocol)) continue;
        const subject = { client, host: service.host, service, port: port.number, listenerPort: 0 };
        const table = outboundCluster(port.number, '', service.host);
        for (const domain of freeDomains(subject, view, read, deps))
          if (isDialled(domain, port.number))
            emitMember(emit, list, deps.encoder.listener(apiListener(domain, table), [], from));
      }
    },
    sameMember,
  );
}

/** `reviews.shop:9080`: not an address, not a pod, not the absolute form. */
function isDialled(domain: string, port: number): boolean {
  const end = `:${port}`;
  if (!domain.endsWith(end)) return false;
  const name = domain.slice(0, -end.length);
  return !isWildcard(name) && !name.endsWith('.') && !name.startsWith('[') && !isAddress(name);
}
