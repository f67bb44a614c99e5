import { type GatewayTopology, forwardClientCertDetails } from '../../model/mesh-config.ts';
import { present } from '../destination-rule/quantities.ts';
import type { Field } from '../field.ts';

/** The members of ProxyConfig gatewayTopology that are set, in the mesh config or by a node. */
export function readGatewayTopology(field: Field): Partial<GatewayTopology> {
  const forward = field.get('forwardClientCertDetails').oneOf('UNDEFINED', ...forwardClientCertDetails);
  return present({
    numTrustedProxies: field.get('numTrustedProxies').integer(0, 2 ** 31 - 1),
    forwardClientCertDetails: forward === 'UNDEFINED' ? undefined : forward,
    proxyProtocol: field.get('proxyProtocol').expectObject().isSet || undefined,
  });
}
