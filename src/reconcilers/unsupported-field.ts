import type { KindName } from '../api/kinds.ts';

/** A field of Istio's API that is accepted but has no effect. */
export interface UnsupportedField {
  /** `MeshConfig` and `MeshNetworks` are texts in a ConfigMap. */
  readonly kind: KindName | 'MeshConfig' | 'MeshNetworks';
  /**
   * Path of the field. `[]` stands for every list element, `{}` for every entry of a map:
   * `spec.servers[].defaultEndpoint`.
   */
  readonly field: string;
  /** Only this value of the field has no effect. */
  readonly value?: string;
  /** Istio no longer acts on it either. */
  readonly isDeprecated?: true;
  /** A sentence for the owner, if there is more to say. */
  readonly note?: string;
}
