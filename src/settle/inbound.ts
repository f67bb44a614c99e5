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

/** What a workload serves through its proxy. */
export function inboundTargets(input: InboundInput): InboundTargets {
  const { sidecar } = input;
  const ingress = sidecar?.ingress ?? [];
  const asked: readonly AskedTarget[] =
    sidecar !== undefined && ingress.length > 0
      ? ingress.map((listener) => ({
          target: ingressTarget(listener, sidecar, input.namespace ?? sidecar.namespace),
          owners: [sidecar.ref],
        }))
      : serviceTargets(input);
  const targets = asked.slice(0, mostInboundPorts).map(({ target }) => target);
  targets.sort((a, b) => a.port - b.port);
  const tooMany = distinctRefs(asked.slice(mostInboundPorts).flatMap(({ owners }) => owners));
  const what = ingress.length > 0 ? tooManyListeners(ingress.length) : tooManyPorts;
  return { targets, problems: tooMany.map((object) => ({ object, reason: 'Ineffective', ...what })) };
}

interface AskedTarget {
  readonly target: InboundTarget;
  /** The objects that ask for the port. */
  readonly owners: readonly ObjectRef[];
}

const tooManyPorts = {
  field: 'spec',
  message: `With this object and older ones, a workload would serve more than ${mostInboundPorts} ports; the rest are not served. Use fewer ports, or select fewer workloads.`,
};

const tooManyListeners = (count: number) => ({
  field: 'spec.ingress',
  message: `has ${count} listeners; at most ${mostInboundPorts} are allowed, and only the first ones are used.`,
});

function ingressTarget(listener: IngressListener, sidecar: SidecarModel, namespace: string): InboundTarget {
  const { port, protocol, name, bind, bindToPort, endpoint } = listener;
  const connectionPool = listener.connectionPool ?? sidecar.inboundConnectionPool;
  const ingress: SidecarIngress = { bind, bindToPort, endpoint };
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
  readonly owners: ObjectRef[];
}

function serviceTargets(input: InboundInput): AskedTarget[] {
  // Without redirection, a listener would take the port from the workload itself.
  if (input.interception === 'NONE') return [];
  const byPort = new Map<number, AskedPort>();
  for (const service of input.services) {
    const seen = new Set<string>();
    for (const { port, number } of portsOf(service, input)) {
      const duplicate = `${number} ${port.protocol}`;
      if (port.protocol === 'UDP' || seen.has(duplicate)) continue;
      seen.add(duplicate);
      const { host, name, namespace, registry } = service;
      const entry = { host, name, namespace, registry, port: port.number, portName: port.name };
      const found = byPort.get(number);
      if (found === undefined)
        byPort.set(number, { first: service, port, services: [entry], owners: [...service.origins] });
      else {
        found.services.push(entry);
        found.owners.push(...service.origins);
      }
    }
  }
  return [...byPort].map(([port, asked]) => ({ target: serviceTarget(port, asked, input), owners: asked.owners }));
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
