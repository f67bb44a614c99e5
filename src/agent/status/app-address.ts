/** Where the application is, from here. */
export interface AppAddress {
  /** Of the Pod: the application may listen there only. */
  readonly host: string;
  /** The rules of interception let connections from here pass. Undefined: there are none. */
  readonly from: string | undefined;
}

/** Where a connection comes from. */
export const local = ({ from }: AppAddress): object => (from === undefined ? {} : { localAddress: from });
