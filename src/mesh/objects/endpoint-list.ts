import { type ObjectRef, objectKey } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Reader } from '../../cache/graph.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import { clusterSetDomain } from '../../model/exported-service.ts';
import type { Inputs } from '../inputs.ts';
import { type Exports, hasMulticlusterServices } from './exports.ts';

/** Some endpoints of one service, from one object. */
export interface EndpointList {
  /** `namespace/host` */
  readonly service: string;
  /** The same of the multi-cluster service of which they are endpoints, too. */
  readonly exportedAs?: string;
  readonly endpoints: readonly Endpoint[];
  /** The slice; none if the endpoints are defined in the service itself. */
  readonly origins: readonly ObjectRef[];
  readonly problems: readonly Problem[];
}

/** The services that a list is for. */
export function servicesOf({ service, exportedAs }: Pick<EndpointList, 'service' | 'exportedAs'>): readonly string[] {
  return exportedAs === undefined ? [service] : [service, exportedAs];
}

/** The multi-cluster service that a Service is exported as, if it is. */
export function exportOf(
  read: Reader,
  inputs: Inputs,
  { marks }: Exports,
  { source, namespace, name }: { readonly source: string; readonly namespace: string; readonly name: string },
): Pick<EndpointList, 'exportedAs'> {
  return hasMulticlusterServices(read, inputs) && read.get(marks, objectKey(source, namespace, name)) === true
    ? { exportedAs: `${namespace}/${name}.${namespace}.svc.${clusterSetDomain}` }
    : {};
}

/** Some of what an object says counts for nothing. */
export function ineffective(object: ObjectRef, field: string, message: string): Problem {
  return { object, field, reason: 'Ineffective', message };
}
