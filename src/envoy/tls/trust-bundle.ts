import protobuf from 'protobufjs/minimal.js';
import type { EncodedResource } from '../../ads/store/resource.ts';
import { leaf, resource } from '../encode/resource.ts';

/** What Istio's agents ask for if PROXY_CONFIG_XDS_AGENT is set (PCDS). They do not look at its name. */
export const PROXY_CONFIG = 'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig';

/** `ca_certificates_pem`. Source: istio/api mesh/v1alpha1/proxy.proto. */
const CA_CERTIFICATES = 34;

/** A ProxyConfig with nothing but roots: what an agent has its Envoy trust besides those of its own certificate. */
export function trustBundle(roots: readonly string[]): EncodedResource {
  const writer = protobuf.Writer.create();
  for (const root of roots) writer.uint32((CA_CERTIFICATES << 3) | 2).string(root);
  return resource(PROXY_CONFIG, 'trust-bundle', leaf(new Uint8Array(writer.finish()), []));
}
