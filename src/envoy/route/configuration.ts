import type { RouteConfiguration } from '../gen/types.gen.ts';

/**
 * A route table without its virtual hosts. Serialised messages can be concatenated: these bytes, followed by those of
 * the virtual hosts (each as a field of the table), are the whole table.
 */
export function routeConfigurationHeader(name: string): RouteConfiguration {
  return {
    name,
    validateClusters: { value: false },
    ignorePortInHostMatching: true,
    maxDirectResponseBodySizeBytes: { value: 1024 * 1024 },
  };
}

/** The answer for a table that does not exist: otherwise a listener would wait for it forever. */
export function emptyRouteConfiguration(name: string): RouteConfiguration {
  return { name, validateClusters: { value: false } };
}
