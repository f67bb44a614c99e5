import type { SettledAssignment, SettledLocality } from '../../model/assignment.ts';
import { BackwardWriter } from '../encode/wire.ts';
import { writeEndpoint } from './assignment-endpoint.ts';

/** The bytes of a ClusterLoadAssignment, and whether requests may go anywhere. */
export interface BuiltAssignment {
  readonly bytes: Uint8Array;
  readonly ready: boolean;
}

/** Without endpoints, it has only a name. */
export function buildAssignment(settled: SettledAssignment<Uint8Array>): BuiltAssignment {
  const { clusterName, localities, untilTheLastOne, ready } = settled;
  // ClusterLoadAssignment: cluster_name 1, endpoints 2, policy 4. Policy: overprovisioning_factor 3.
  let count = 1;
  for (const { endpoints, gateways } of localities) count += endpoints.length + gateways.length;
  const writer = new BackwardWriter(bytesOfEndpoint * count);
  if (untilTheLastOne) {
    const end = writer.mark();
    const factor = writer.mark();
    writer.unsigned(1, leavesWithTheLastOne);
    writer.wrap(3, factor);
    writer.wrap(4, end);
  }
  for (const locality of localities.toReversed()) {
    const end = writer.mark();
    writeLocality(writer, locality);
    writer.wrap(2, end);
  }
  writer.text(1, clusterName);
  return { bytes: writer.since(0), ready };
}

/** More than most endpoints need, including their share of the locality: buffers that do not grow are not copied. */
const bytesOfEndpoint = 200;

/**
 * In percent: Envoy leaves a priority in part when its share of healthy endpoints, times this, is less than 100 (its
 * default is 140). Cilium leaves it for others only with the last one: here, if one of a thousand is healthy.
 */
const leavesWithTheLastOne = 100_000;

/** The answer for a cluster that has no endpoints or does not exist. */
export function emptyAssignment(clusterName: string): Uint8Array {
  const writer = new BackwardWriter();
  writer.text(1, clusterName);
  return writer.since(0);
}

/** LocalityLbEndpoints: locality 1, lb_endpoints 2, load_balancing_weight 3, priority 5. */
function writeLocality(writer: BackwardWriter, settled: SettledLocality<Uint8Array>): void {
  const { region, zone, subzone, weight, priority, endpoints, gateways } = settled;
  writer.unsigned(5, priority);
  const weightEnd = writer.mark();
  writer.unsigned(1, weight);
  writer.wrap(3, weightEnd);
  for (const gateway of gateways.toReversed()) writeEndpoint(writer, gateway, true);
  for (let index = endpoints.length - 1; index >= 0; index--) writer.bytes(endpoints[index]!);
  const locality = writer.mark();
  writer.text(3, subzone);
  writer.text(2, zone);
  writer.text(1, region);
  writer.wrap(1, locality);
}
