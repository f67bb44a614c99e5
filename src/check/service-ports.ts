import type { CoreServicePort, Service } from '../api/core.ts';
import type { Gateway } from '../api/gen/gateway.gen.ts';
import { printRef, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { quote } from '../api/quote.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { listIn, textIn } from '../injection/pod.ts';
import { compareAge, printWinner } from '../model/age.ts';
import { type Labels, printSelector, selects } from '../model/labels.ts';
import { servicePortProtocol } from '../reconcilers/protocol.ts';
import type { FileContext } from './context.ts';
import type { WorkloadObject } from './workloads.ts';

/** What runs there is not part of a mesh. */
const SYSTEM_NAMESPACES: readonly string[] = ['kube-system', 'kube-public', 'kube-node-lease'];

/** A port of a Service, with where it is. */
interface PlacedPort {
  readonly service: Service;
  readonly port: CoreServicePort;
  readonly field: string;
}

/** Services have no conditions: what their ports mean is told here. */
export function remarksOnServicePorts(
  { objects }: Pick<LoadedDirectory, 'objects'>,
  workloads: readonly WorkloadObject[],
  context: FileContext,
): readonly Problem[] {
  const gateways = (objects.get('Gateway') ?? []) as readonly Gateway[];
  const ofRouters = gateways.map(({ spec }) => spec.selector ?? {}).filter((labels) => Object.keys(labels).length > 0);
  const services = ((objects.get('Service') ?? []) as readonly Service[]).filter(
    ({ metadata: { namespace = '' }, spec }) =>
      // Of one that leads to another name, the ports mean nothing; of one before routers, those of the Gateways count.
      spec?.type !== 'ExternalName' &&
      !ofRouters.some((selector) => selects(selector, spec?.selector ?? {})) &&
      namespace !== context.rootNamespace &&
      !SYSTEM_NAMESPACES.includes(namespace),
  );
  return [
    ...services.flatMap((service) => withoutProtocol(service, context)),
    ...sharedTargets(services, workloads, context),
  ];
}

function withoutProtocol(service: Service, { source }: FileContext): Problem[] {
  return portsOf(service).flatMap(({ port, field }): Problem[] => {
    if (port.protocol === 'SCTP' || servicePortProtocol(port) !== 'Unsupported') return [];
    const message = `${whatIsUnknown(port)}: what a connection carries is found out from what its client sends first, and a server that speaks first is kept waiting. ${howToName(port)}`;
    return [{ object: refOf(source, service), field, reason: 'Ineffective', message }];
  });
}

function whatIsUnknown({ name = '', appProtocol }: CoreServicePort): string {
  if (appProtocol !== undefined) return `has the appProtocol ${quote(appProtocol)}, which is not known`;
  return name === ''
    ? 'has neither a name that begins with a protocol, nor appProtocol'
    : `is called ${quote(name)}, which names no protocol`;
}

function howToName({ name = '', appProtocol }: CoreServicePort): string {
  // Beside it, the name does not count.
  if (appProtocol !== undefined) return 'Change appProtocol to one that is: http, grpc, tcp.';
  const own = name === '' ? '' : `-${name}`;
  return `Set appProtocol, or begin the name with a protocol: http${own}, grpc${own}, tcp${own}.`;
}

/**
 * Ports of different Services that lead to one port of a workload: its proxy serves them as one, as the oldest Service
 * has it.
 */
function sharedTargets(
  services: readonly Service[],
  workloads: readonly WorkloadObject[],
  { source }: FileContext,
): Problem[] {
  const byLabel = Map.groupBy(services.filter(selectorOf), (service) => {
    const [label, value] = Object.entries(selectorOf(service)!)[0]!;
    return `${service.metadata.namespace ?? ''}|${label}=${value}`;
  });
  const seen = new Set<string>();
  const found = new Map<string, Problem>();
  for (const workload of workloads) {
    // Replicas have the same ports.
    const key = `${workload.namespace}|${printSelector(workload.labels)}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const selecting = Object.entries(workload.labels)
      .flatMap(([label, value]) => byLabel.get(`${workload.namespace}|${label}=${value}`) ?? [])
      .filter((service) => selects(selectorOf(service)!, workload.labels))
      .sort((a, b) => compareAge(aged(a), aged(b)));
    if (selecting.length === 0) continue;
    const owners = new Map<number, PlacedPort>();
    for (const placed of selecting.flatMap(portsOf)) {
      const number = placed.port.protocol === 'UDP' ? undefined : targetOf(placed.port, workload);
      const first = number === undefined ? undefined : owners.get(number);
      if (number === undefined) continue;
      if (first === undefined) {
        owners.set(number, placed);
        continue;
      }
      const message = whatDiffers(first, placed, number, workload, source);
      const object = refOf(source, placed.service);
      if (message !== undefined)
        found.set(`${printRef(object)} ${placed.field}`, {
          object,
          field: placed.field,
          reason: 'Ineffective',
          message,
        });
    }
  }
  return [...found.values()];
}

function whatDiffers(
  first: PlacedPort,
  other: PlacedPort,
  number: number,
  workload: WorkloadObject,
  source: string,
): string | undefined {
  const [one, two] = [first, other].map(({ port }) => servicePortProtocol(port)) as [string, string];
  const isOneService = first.service === other.service;
  if (one === two && (isOneService || first.port.port === other.port.port)) return undefined;
  const owner = refOf(source, first.service);
  const winner = isOneService ? 'this Service' : printWinner(printRef(owner), aged(first.service), aged(other.service));
  const both = `leads to port ${number} of ${printRef(workload.ref)}, as does port ${first.port.port} of ${winner}`;
  if (one === two)
    return `${both}: its proxy serves the two as one, with the connection pool and in the metrics of port ${first.port.port}. Use the same port number, or another targetPort.`;
  const name = (protocol: string): string => (protocol === 'Unsupported' ? 'a detected protocol' : protocol);
  return `${both}, which has ${name(one)} where this one has ${name(two)}: the proxy of the workload serves both as ${name(one)}. Use the same protocol, or another targetPort.`;
}

const aged = ({ metadata: { name, namespace = '', creationTimestamp = '' } }: Service) => ({
  name,
  namespace,
  createdAt: creationTimestamp,
});

/** Undefined: it selects nothing by labels. */
function selectorOf({ spec }: Service): Labels | undefined {
  const selector = spec?.selector ?? {};
  return Object.keys(selector).length === 0 ? undefined : selector;
}

function portsOf(service: Service): PlacedPort[] {
  return (service.spec?.ports ?? []).map((port, i) => ({ service, port, field: `spec.ports[${i}]` }));
}

/** Undefined: the workload has no port of this name. */
function targetOf({ port, targetPort = port }: CoreServicePort, { spec }: WorkloadObject): number | undefined {
  if (typeof targetPort === 'number') return targetPort;
  const named = ['containers', 'initContainers']
    .flatMap((list) => listIn(spec, list))
    .flatMap((container) => listIn(container, 'ports'))
    .find((each) => textIn(each, 'name') === targetPort)?.['containerPort'];
  return typeof named === 'number' ? named : undefined;
}
