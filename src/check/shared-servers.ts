import type { Gateway } from '../api/gen/gateway.gen.ts';
import { printRef, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { quote } from '../api/quote.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { printSelector } from '../model/labels.ts';
import type { FileContext } from './context.ts';

/** Without TLS, a router cannot tell for which Gateway a request is. */
const WITHOUT_TLS: readonly string[] = ['HTTP', 'HTTP2', 'GRPC', 'GRPC-WEB'];

/**
 * HTTP servers of different Gateways with one host, on one port of the same routers. All of them work, and conditions do
 * not complain: but what is bound to one Gateway is served for the other, too.
 */
export function remarksOnSharedServers(
  { objects }: Pick<LoadedDirectory, 'objects'>,
  { source }: FileContext,
): readonly Problem[] {
  const first = new Map<string, Gateway>();
  return ((objects.get('Gateway') ?? []) as readonly Gateway[]).flatMap((gateway) => {
    const { selector = {}, servers = [] } = gateway.spec;
    const { namespace = '' } = gateway.metadata;
    return servers.flatMap(({ port, bind = '', hosts }, i): Problem[] => {
      if (!WITHOUT_TLS.includes(port.protocol.toUpperCase())) return [];
      const shared = hosts.flatMap((host) => {
        const [scope, name] = host.includes('/') ? (host.split('/', 2) as [string, string]) : ['*', host];
        const key = `${printSelector(selector)}|${port.number}|${bind}|${scope === '.' ? namespace : scope}/${name.toLowerCase()}`;
        const other = first.get(key);
        if (other === undefined) first.set(key, gateway);
        return other === undefined || other === gateway ? [] : [{ host, other }];
      });
      const [one] = shared;
      if (one === undefined) return [];
      const message = `${printRef(refOf(source, one.other))} has ${quote(one.host)} on port ${port.number} of the same routers, too: they cannot tell the two apart, and serve VirtualServices of either Gateway for both. Merge the Gateways, or remove the host from one of them.`;
      return [{ object: refOf(source, gateway), field: `spec.servers[${i}].hosts`, reason: 'Ineffective', message }];
    });
  });
}
