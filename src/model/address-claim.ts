import type { Aged } from './age.ts';

/** An automatic address of a host, as the status of a ServiceEntry has it. */
export interface AllocatedAddress {
  readonly value: string;
  readonly host: string;
}

/** What a ServiceEntry means for automatic addresses. */
export interface AddressClaim extends Aged {
  /** Hosts that are to have an address of each family; canonical and distinct. */
  readonly hosts: readonly string[];
  /** What its status has. */
  readonly held: readonly AllocatedAddress[];
  /** Its own addresses, which nobody else may be given. */
  readonly fixed: readonly string[];
}
