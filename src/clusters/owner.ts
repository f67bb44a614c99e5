/** Who has a kubeconfig. */
export type Owner =
  | { readonly kind: 'Secret'; readonly namespace: string; readonly name: string; readonly uid: string }
  | { readonly kind: 'File'; readonly path: string };

/** As people know it. */
export function printOwner(owner: Owner): string {
  return owner.kind === 'Secret' ? `${owner.namespace}/${owner.name}` : owner.path;
}

/** Another Secret of the same name is the same owner. */
export function ownerKey(owner: Owner): string {
  return `${owner.kind} ${printOwner(owner)}`;
}
