import type { Client, Targets } from '../model/client.ts';
import type { RouteSettings } from '../model/mesh-config.ts';
import type { Parent } from '../model/route-binding.ts';

/** Which client gets routes, and where: matches that can never apply there are left out. */
export interface RouteScope {
  readonly client: Client;
  /** Whose routes these are. */
  readonly parent: Parent;
  /** Port of the listener (for a gateway: of the server). 0: a listener for all ports. */
  readonly listenerPort: number;
}

/** For whom rules are settled. */
export interface RouteContext extends RouteScope {
  /** Of all destinations that the rules name. */
  readonly targets: Targets;
  readonly settings: RouteSettings;
  /** The listener terminates TLS: a redirect without a scheme stays on https. */
  readonly tls?: boolean;
}
