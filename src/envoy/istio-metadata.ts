import type { ObjectRef } from '../api/object.ts';
import type { Metadata } from './gen/types.gen.ts';
import type { Json } from './encode/proto.ts';
import { struct } from './encode/wrappers.ts';

/**
 * The filter metadata named `istio`, which telemetry and tools read. Envoy itself never decides by it. Undefined
 * members are left out.
 */
export interface IstioMetadata {
  /** The services that a cluster leads to. */
  readonly services?: readonly { readonly host: string; readonly name: string; readonly namespace: string }[];
  /** The object that shaped the resource; see {@link configPath}. */
  readonly config?: string | undefined;
  readonly subset?: string | undefined;
  readonly external?: true | undefined;
  /** Tells istio-proxy's `istio.alpn` filter to leave the protocols alone. */
  readonly alpn_override?: 'false' | undefined;
}

export function istioMetadata(members: IstioMetadata): Metadata {
  const json: Record<string, Json> = {};
  for (const [key, value] of Object.entries(members) as [string, Json | undefined][])
    if (value !== undefined) json[key] = value;
  return { filterMetadata: { istio: struct(json) } };
}

/** How Istio names an object in metadata: `/apis/networking.istio.io/v1/namespaces/ns/destination-rule/name`. */
export function configPath({ kind, namespace, name }: Pick<ObjectRef, 'kind' | 'namespace' | 'name'>): string {
  const inPath = kind.replace(/\B[A-Z]/g, '-$&').toLowerCase();
  return `/apis/networking.istio.io/v1/namespaces/${namespace}/${inPath}/${name}`;
}
