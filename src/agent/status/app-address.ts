import type { AgentSettings } from '../settings/settings.ts';

/** Where the application is, from here. */
export interface AppAddress {
  /** Of the Pod: the application may listen there only. */
  readonly host: string;
  /** The rules of interception let connections from here pass. Undefined: there are none. */
  readonly from: string | undefined;
}

/** Where a connection comes from. */
export const local = ({ from }: AppAddress): object => (from === undefined ? {} : { localAddress: from });

/** The address of the Pod, as the kubelet has it; from where the rules of interception let a connection pass. */
export function appAddress({ env, pod, type }: Pick<AgentSettings, 'env' | 'pod' | 'type'>): AppAddress {
  const [address = '127.0.0.1'] = pod.addresses;
  const isV6 = address.includes(':');
  const intercepted = type === 'sidecar' && env['ISTIO_META_INTERCEPTION_MODE'] !== 'NONE';
  const from = intercepted ? (isV6 ? '::6' : '127.0.0.6') : undefined;
  // As applications expect that listen on loopback only, where inbound traffic comes to them by it.
  const isLocal = env['REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION'] === 'true';
  return { host: isLocal ? (isV6 ? '::1' : '127.0.0.1') : address, from };
}
