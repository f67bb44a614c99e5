/** Why a kubeconfig or another file is not used. Never contains a credential. */
export interface Refusal {
  /** As in `users[0].user.exec`; empty: all of it. */
  readonly field: string;
  /** What is wrong, and what to do. */
  readonly message: string;
}

/** As people read it, after the name of whose it is. */
export function printRefusal({ field, message }: Refusal): string {
  return field === '' ? message : `${field} ${message}`;
}
