/** How many secrets objects of a namespace may name for proxies in the same namespace; a secret in files counts as one. */
export const mostNamed = 500;
/** The same for proxies in other namespaces, each of which needs its own copy. */
export const mostNamedForOthers = 20;
