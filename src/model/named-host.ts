/** The whole table of a proxy, as Istio's agents ask for it (NDS). Source: istio/istio pkg/dns/proto/nds.proto. */
export const NAME_TABLE = 'type.googleapis.com/istio.networking.nds.v1.NameTable';

/** One host, as our own agent asks for it. */
export const HOST = 'type.googleapis.com/fairlead.names.v1.Host';

/**
 * Fields of `Host`. Addresses are bytes, one after the other, since a headless Service may have a thousand. Short forms
 * of a Kubernetes host follow from its name.
 */
export const HOST_FIELDS = { v4: 1, v6: 2, isShort: 3 } as const;

/** A name that applications may look up, and what a proxy's agent answers. */
export interface NamedHost {
  readonly host: string;
  /** Canonical text; at least one. */
  readonly addresses: readonly string[];
  readonly registry: 'Kubernetes' | 'External';
  /** Of the Service, after the name of a Pod if the host is one; empty unless the host has short forms. */
  readonly shortName: string;
  readonly namespace: string;
}
