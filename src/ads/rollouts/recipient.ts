/** A client, as far as people want to know who it is. One for each stream. */
export interface Recipient {
  readonly stream: string;
  readonly nodeId: string;
  /** Empty: unknown. */
  readonly build: string;
  /** Which it has proven to be of: see `TenantOf`; empty: none. */
  readonly tenant: string;
}

/** Whether it has proven of which tenant it is. */
export function isProven({ tenant }: Recipient): boolean {
  return tenant !== '';
}

/** Why a client does not take what an object has changed. */
export interface Rejected {
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
  /** The client's own words. */
  readonly message: string;
  /** Keys of the objects that the resource was made from. */
  readonly origins: ReadonlySet<string>;
}
