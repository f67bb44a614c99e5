import type { ObjectRef } from '../api/object.ts';
import type { Labels } from './labels.ts';

/** What all kinds in `security.istio.io` have in common. */
export interface PolicyObject {
  readonly key: string;
  readonly ref: ObjectRef;
  readonly name: string;
  readonly namespace: string;
  readonly createdAt: string;
  readonly target: PolicyTarget;
}

/** Which workloads a policy is for. */
export type PolicyTarget =
  /** All workloads of the namespace, or of the mesh if the policy is in the root namespace. */
  | { readonly kind: 'namespace' }
  | { readonly kind: 'labels'; readonly labels: Labels }
  /** Proxies of these Gateways of the Gateway API, in the policy's namespace. Empty: none. */
  | { readonly kind: 'gateways'; readonly names: readonly string[] };

/** The label on proxies of a Gateway of the Gateway API: its name. */
export const gatewayNameLabel = 'gateway.networking.k8s.io/gateway-name';

/** The label selectors that stand for a target, of which one must match; an empty one selects all workloads. */
export function selectorsOf(target: PolicyTarget): readonly Labels[] {
  switch (target.kind) {
    case 'namespace':
      return [{}];
    case 'labels':
      return [target.labels];
    case 'gateways':
      return target.names.map((name) => ({ [gatewayNameLabel]: name }));
  }
}
