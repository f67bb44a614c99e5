import { isIPv6 } from 'node:net';
import type { Service } from '../../api/core.ts';
import type { ExportConflict, ExportedParts, ExportedService } from '../../model/exported-service.ts';
import { type MeshService, type ServicePort, isHeadless } from '../../model/service.ts';
import { mostPorts } from '../core/service.ts';

/** A ServiceExport. */
export interface Export {
  readonly cluster: string;
  /** The Service of its name beside it, as written and as claim of its host. Absent: there is none. */
  readonly of?: { readonly object: Service; readonly claim: MeshService };
}

interface Exporter extends Required<Export> {}

/** What ServiceExports of one name mean together. @param exports the oldest first. */
export function mergeExports(exports: readonly Export[]): ExportedService {
  const exporters = exports.filter((each): each is Exporter => refusalOf(each) === undefined);
  return {
    clusters: exporters.map(({ cluster }) => cluster),
    ...(exporters[0] && { service: partsOf(exporters) }),
    refused: Object.fromEntries(
      exports.flatMap((each) => {
        const reason = refusalOf(each);
        return reason === undefined ? [] : [[each.cluster, reason]];
      }),
    ),
    conflicts: conflictsOf(exporters),
  };
}

function refusalOf({ of }: Export): 'NoService' | 'InvalidServiceType' | undefined {
  if (of === undefined) return 'NoService';
  return of.object.spec?.type === 'ExternalName' ? 'InvalidServiceType' : undefined;
}

function partsOf(exporters: readonly Exporter[]): ExportedParts {
  const claims = exporters.map(({ of }) => of.claim);
  const { exportTo, persistentSession, trafficDistribution, nodeLocal, publishesNotReady, origins } = claims[0]!;
  return {
    ports: mergePorts(claims),
    exportTo,
    persistentSession,
    ...(trafficDistribution && { trafficDistribution }),
    nodeLocal,
    ...(publishesNotReady && { publishesNotReady }),
    subjectAltNames: [...new Set(claims.flatMap(({ subjectAltNames }) => subjectAltNames))],
    origins,
  };
}

/** All ports, each name and each number of a transport once. */
function mergePorts(services: readonly MeshService[]): readonly ServicePort[] {
  const found: ServicePort[] = [];
  const [names, numbers] = [new Set<string>(), new Set<string>()];
  for (const port of services.flatMap(({ ports }) => ports)) {
    const number = `${port.number} ${String(port.protocol === 'UDP')}`;
    if (names.has(port.name) || numbers.has(number) || found.length === mostPorts) continue;
    names.add(port.name);
    numbers.add(number);
    found.push(port);
  }
  return found;
}

/** A property in which Services may differ; undefined: it does not matter for this one. */
type Property = (exporter: Exporter) => string | undefined;

const properties: readonly (readonly [ExportConflict['reason'], Property])[] = [
  [
    'PortConflict',
    ({ of }) =>
      JSON.stringify(of.claim.ports.map(({ name, number, protocol }) => [name, number, protocol].join('|')).sort()),
  ],
  ['TypeConflict', ({ of }) => String(isHeadless(of.claim))],
  ['SessionAffinityConflict', ({ of }) => of.object.spec?.sessionAffinity ?? 'None'],
  [
    'SessionAffinityConfigConflict',
    ({ of: { object } }) =>
      object.spec?.sessionAffinity === 'ClientIP'
        ? String(object.spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 10_800)
        : undefined,
  ],
  ['InternalTrafficPolicyConflict', ({ of }) => String(of.claim.nodeLocal)],
  ['TrafficDistributionConflict', ({ of }) => of.claim.trafficDistribution ?? ''],
  ['IPFamilyConflict', ({ of }) => (isHeadless(of.claim) ? undefined : familiesOf(of.claim))],
];

const familiesOf = ({ addresses }: MeshService): string => [...new Set(addresses.map(isIPv6))].sort().join();

function conflictsOf(exporters: readonly Exporter[]): readonly ExportConflict[] {
  return properties.flatMap(([reason, property]) => {
    const values = exporters.flatMap((each) => {
      const value = property(each);
      return value === undefined ? [] : [{ cluster: each.cluster, value }];
    });
    const others = values.filter(({ value }) => value !== values[0]?.value);
    return others.length === 0 ? [] : [{ reason, clusters: others.map(({ cluster }) => cluster) }];
  });
}
