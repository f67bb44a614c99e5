import type { RouteConfiguration } from '../gen/types.gen.ts';

/**
 * A route table without its virtual hosts. Serialised messages can be concatenated: these bytes, followed by those of
 * the virtual hosts (each as a field of the table), are the whole table.
 *
 * @param forAllPorts its virtual hosts tell the ports of requests apart.
 */
export function routeConfigurationHeader(name: string, forAllPorts: boolean): RouteConfiguration {
  return {
    name,
    validateClusters: { value: false },
    ...(forAllPorts ? {} : { ignorePortInHostMatching: true }),
    maxDirectResponseBodySizeBytes: { value: 1024 * 1024 },
  };
}

/** The answer for a table that does not exist: otherwise a listener would wait for it forever. */
export function emptyRouteConfiguration(name: string): RouteConfiguration {
  return { name, validateClusters: { value: false } };
}
