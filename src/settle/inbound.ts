import { type ObjectRef, distinctRefs } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { InboundService, InboundTarget, SidecarIngress } from '../model/inbound.ts';
import type { MeshService, ServicePort } from '../model/service.ts';
import type { IngressListener, SidecarModel } from '../model/sidecar.ts';
import type { ConnectionPool, DestinationRuleModel } from '../model/traffic-policy.ts';
import type { Traits } from '../model/traits.ts';
import { ownValue } from '../model/own-value.ts';

export interface InboundInput {
  /** Services that select the workload, or have an endpoint at its address, oldest first. */
  readonly services: readonly MeshService[];
  /** Addresses of the workload. */
  readonly addresses?: readonly string[];
  /** Named ports of the workload; undefined if nothing is known about it. */
  readonly ports?: Readonly<Record<string, number>> | undefined;
  /** A WorkloadEntry names service ports, and its numbers override theirs. */
  readonly isEntry?: boolean | undefined;
  readonly sidecar?: SidecarModel | undefined;
  /** Namespace of the proxy, which differs from the Sidecar's if that is in the root namespace. */
  readonly namespace?: string;
  readonly interception: Traits['interception'];
  readonly ruleOf: (service: MeshService) => DestinationRuleModel | undefined;
}

export interface InboundTargets {
  /** By port. */
  readonly targets: readonly InboundTarget[];
  readonly problems: readonly Problem[];
}

/** Each port is one cluster plus filter chains, and all those of a workload are built together. */
export const mostInboundPorts = 1_000;
/** Several Services may share a port: each is named in its cluster. */
const mostPortsOfServices = 10_000;

/** What a workload serves through its proxy. */
export function inboundTargets(input: InboundInput): InboundTargets {
  const { sidecar } = input;
  const ingress = sidecar?.ingress ?? [];
  const isOfSidecar = sidecar !== undefined && ingress.length > 0;
  const { targets, dropped } = isOfSidecar ? ingressTargets(sidecar, input.namespace) : serviceTargets(input);
  const what = isOfSidecar ? tooManyListeners(ingress.length) : tooManyPorts;
  return {
    targets: targets.sort((a, b) => a.port - b.port),
    problems: distinctRefs(dropped).map((object) => ({ object, reason: 'Ineffective', ...what })),
  };
}

interface AskedTargets {
  /** The first ones, built. */
  readonly targets: InboundTarget[];
  /** The objects that ask for the others. */
  readonly dropped: readonly ObjectRef[];
}

const tooManyPorts = {
  field: 'spec',
  message: `With this object and older ones, a workload would serve more than ${mostInboundPorts} ports, or ${mostPortsOfServices} if each counts once per Service; the rest are not served. Use fewer ports, or select fewer workloads.`,
};

const tooManyListeners = (count: number) => ({
  field: 'spec.ingress',
  message: `has ${count} listeners; at most ${mostInboundPorts} are allowed, and only the first ones are used.`,
});

function ingressTargets(sidecar: SidecarModel, namespace = sidecar.namespace): AskedTargets {
  const { ingress, ref } = sidecar;
  return {
    targets: ingress.slice(0, mostInboundPorts).map((listener) => ingressTarget(listener, sidecar, namespace)),
    dropped: ingress.length > mostInboundPorts ? [ref] : [],
  };
}

function ingressTarget(listener: IngressListener, sidecar: SidecarModel, namespace: string): InboundTarget {
  const { port, protocol, name, bind, bindToPort, endpoint, tls } = listener;
  const connectionPool = listener.connectionPool ?? sidecar.inboundConnectionPool;
  const ingress: SidecarIngress = { bind, bindToPort, endpoint, ...(tls && { tls }) };
  return {
    port,
    protocol,
    // There is no service: the Sidecar provides the name instead.
    services: [
      {
        host: `${sidecar.name}.${namespace}`,
        name: sidecar.name,
        namespace,
        registry: 'External',
        port,
        portName: name,
      },
    ],
    ...(connectionPool === undefined ? {} : { connectionPool }),
    ingress,
    origins: [sidecar.ref],
  };
}

interface AskedPort {
  readonly first: MeshService;
  readonly port: ServicePort;
  readonly services: InboundService[];
}

function serviceTargets(input: InboundInput): AskedTargets {
  // Without redirection, a listener would take the port from the workload itself.
  if (input.interception === 'NONE') return { targets: [], dropped: [] };
  const byPort = new Map<number, AskedPort>();
  const dropped = new Set<MeshService>();
  let count = 0;
  for (const service of input.services) {
    if (count >= mostPortsOfServices) {
      dropped.add(service);
      continue;
    }
    const seen = new Set<string>();
    for (const { port, number } of portsOf(service, input)) {
      const duplicate = `${number} ${port.protocol}`;
      if (port.protocol === 'UDP' || seen.has(duplicate)) continue;
      seen.add(duplicate);
      const { host, name, namespace, registry } = service;
      const entry = { host, name, namespace, registry, port: port.number, portName: port.name };
      const found = byPort.get(number);
      if (count >= mostPortsOfServices || (found === undefined && byPort.size >= mostInboundPorts)) {
        dropped.add(service);
        continue;
      }
      count++;
      if (found === undefined) byPort.set(number, { first: service, port, services: [entry] });
      else found.services.push(entry);
    }
  }
  return {
    targets: [...byPort].map(([port, asked]) => serviceTarget(port, asked, input)),
    dropped: [...dropped].flatMap(({ origins }) => origins),
  };
}

function serviceTarget(
  number: number,
  { first, port, services }: AskedPort,
  { sidecar, ruleOf }: InboundInput,
): InboundTarget {
  const rule = ruleOf(first);
  const own = sidecar?.inboundConnectionPool;
  const connectionPool = own ?? poolOf(rule, port.number);
  const origins: ObjectRef[] = [...first.origins];
  if (own !== undefined && sidecar !== undefined) origins.push(sidecar.ref);
  else if (connectionPool !== undefined && rule !== undefined) origins.push(...rule.origins);
  return {
    port: number,
    protocol: port.protocol,
    services,
    ...(connectionPool === undefined ? {} : { connectionPool }),
    origins,
  };
}

/** Port settings replace the rule's own. */
function poolOf(rule: DestinationRuleModel | undefined, port: number): ConnectionPool | undefined {
  const ported = rule?.portPolicies[port];
  return ported === undefined ? rule?.policy.connectionPool : ported.connectionPool;
}

interface TargetPort {
  readonly port: ServicePort;
  /** The port on which the workload is reached. */
  readonly number: number;
}

function portsOf(service: MeshService, { addresses = [], ports, isEntry }: InboundInput): TargetPort[] {
  const at = service.endpoints.filter(({ address }) => addresses.includes(address));
  if (at.length > 0)
    return at.flatMap((endpoint) =>
      endpoint.servicePorts.map((port) => ({ port, number: numberIn(endpoint.ports, port) })),
    );
  return service.ports.flatMap((port) => {
    const number = isEntry ? numberIn(ports, port) : targetPort(port, ports);
    return number === undefined ? [] : [{ port, number }];
  });
}

/**
 * A WorkloadEntry, or an endpoint of a ServiceEntry, names service ports, and its numbers override the service's own.
 */
function numberIn(named: Readonly<Record<string, number>> = {}, port: ServicePort): number {
  const target = port.targetPort ?? port.number;
  if (typeof target === 'number') return ownValue(named, port.name) ?? target;
  return ownValue(named, target) ?? port.number;
}

/** Undefined if a Pod has no port with that name; 0 if nothing is known about the workload. */
function targetPort(port: ServicePort, named: Readonly<Record<string, number>> | undefined): number | undefined {
  const target = port.targetPort ?? port.number;
  if (typeof target === 'number') return target;
  if (named === undefined) return 0;
  return ownValue(named, target);
}
