import type { ConnectedProxy } from './types.ts';

/**
 * The namespace that a proxy has proven to be of; empty: none. All proxies of a namespace count as one voice when it
 * comes to what others are sent.
 * @param address that it connects from.
 */
export type TenantOf = (proxy: ConnectedProxy, address: string) => string;

export const provenTenant: TenantOf = ({ identity }) => identity?.namespace ?? '';
