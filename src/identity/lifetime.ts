const HOUR = 60 * 60 * 1000;

/** Milliseconds; of Istio: DEFAULT_WORKLOAD_CERT_TTL and MAX_WORKLOAD_CERT_TTL. */
export const DEFAULT_LIFETIME = 24 * HOUR;
export const LONGEST_LIFETIME = 90 * 24 * HOUR;
