/** The settled MeshNetworks: which addresses and clusters are in which network, and how others get there. */
export interface MeshNetworks {
  /** By cluster. */
  readonly registries: ReadonlyMap<string, string>;
  /** By range, as `canonicalCidr` prints it. */
  readonly ranges: ReadonlyMap<string, string>;
  readonly gateways: readonly ConfiguredGateway[];
}

export interface ConfiguredGateway {
  readonly network: string;
  readonly port: number;
  readonly at:
    | { readonly kind: 'address'; readonly address: string }
    /** In each of the clusters that are in the network. */
    | { readonly kind: 'service'; readonly host: string; readonly clusters: readonly string[] };
}
