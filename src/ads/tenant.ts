import type { ConnectedProxy } from './types.ts';

/**
 * The tenant that a proxy has proven to be of: see `PeerIdentity`; empty: none. All proxies of a tenant count as one voice
 * when it comes to what others are sent.
 * @param address that it connects from.
 */
export type TenantOf = (proxy: ConnectedProxy, address: string) => string;

export const provenTenant: TenantOf = ({ identity }) => identity?.tenant ?? '';
