/** Secrets that objects of a namespace may name for proxies in the same namespace. */
export const mostNamed = 500;
/** That objects of a namespace may name for proxies in others: each of these needs its own. */
export const mostNamedForOthers = 20;
