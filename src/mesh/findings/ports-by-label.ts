import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import type { Labels } from '../../model/labels.ts';
import { type MeshService, protocolClass } from '../../model/service.ts';
import { labelKeys } from '../objects/label-keys.ts';
import type { Services } from '../objects/services.ts';

export interface PortOfService {
  /** `namespace/name` */
  readonly service: string;
  readonly port: number;
  readonly selector: Labels;
}

/** Of the services that share a label, this many are looked at. */
const mostServices = 20;

/**
 * The first port of this kind of each Service with a selector, by `namespace|` and by `namespace|label=value` of the
 * selector.
 */
export function declarePortsByLabel(
  graph: Graph,
  { services }: Pick<Services, 'services'>,
  kind: 'tcp' | 'sniffed',
): Collection<readonly PortOfService[]> {
  const portOf = ({ ports }: MeshService) => ports.find(({ protocol }) => protocolClass(protocol) === kind);
  const byLabel: Index<MeshService> = graph.index(`services with ${kind} ports`, services, (_, service) => {
    const { namespace, selector = {} } = service;
    if (Object.keys(selector).length === 0 || portOf(service) === undefined) return [];
    return [`${namespace}|`, ...labelKeys(namespace, selector)];
  });
  return graph.derive(`${kind} ports by label`, byLabel, (key, members, _, emit: Emit<readonly PortOfService[]>) =>
    emit(
      key,
      members.slice(0, mostServices).map(({ value }) => {
        const { name, namespace, selector = {} } = value;
        return { service: `${namespace}/${name}`, port: portOf(value)?.number ?? 0, selector };
      }),
    ),
  );
}
