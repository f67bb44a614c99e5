import { quote } from '../api/quote.ts';
import type { NamedPort } from '../model/global-service.ts';
import { DNS_LABEL, readNamed, transportOf } from './content.ts';
import { type Decoded, decodeJson } from './member.ts';
import type { MeshCluster } from './names.ts';

/** A Service that another cluster exports. Source: Cilium pkg/clustermesh/mcsapi/types, `MCSAPIServiceSpec`. */
export interface RemoteServiceExport {
  readonly namespace: string;
  readonly name: string;
  /** RFC 3339. Where clusters disagree, the oldest export decides. */
  readonly created: string;
  readonly type: 'ClusterSetIP' | 'Headless';
  readonly ports: readonly ExportedPort[];
  readonly sessionAffinity: 'None' | 'ClientIP';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface ExportedPort extends NamedPort {
  readonly appProtocol?: string;
}

const MOST_PORTS = 1_000;

/** `suffix`: of the key. */
export function decodeServiceExport(
  suffix: string,
  bytes: Uint8Array,
  cluster: MeshCluster,
): Decoded<RemoteServiceExport> {
  return decodeJson(bytes, (whole) => {
    const named = readNamed(whole, suffix, cluster, DNS_LABEL);
    const created = whole.get('exportCreationTimestamp');
    const affinity = whole.get('sessionAffinity');
    return {
      ...named,
      created: created.matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/, 'a time'),
      type: whole.get('type').oneOf('ClusterSetIP', 'Headless'),
      ports: whole
        .get('ports')
        .list(MOST_PORTS)
        .map((port): ExportedPort => {
          const protocol = port.get('protocol');
          const appProtocol = port.get('appProtocol').text();
          const name = port.get('name');
          return {
            name: name.text() && name.matching(DNS_LABEL, 'the name of a port'),
            port: port.get('port').number(1, 65_535),
            protocol:
              transportOf(protocol.text()) ?? protocol.wrong(`${quote(protocol.text())} is not TCP, UDP or SCTP`),
            ...(appProtocol && { appProtocol }),
          };
        }),
      sessionAffinity: affinity.text() === '' ? 'None' : affinity.oneOf('None', 'ClientIP'),
      labels: whole.get('labels').texts(),
      annotations: whole.get('annotations').texts(),
    };
  });
}
