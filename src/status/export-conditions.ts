import type { ExportConflict, ExportedService } from '../model/exported-service.ts';

/** A condition of a ServiceExport without the time of its last change. */
export interface ExportCondition {
  readonly type: 'Valid' | 'Ready' | 'Conflict';
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  /** The generation of the object that was judged; a JSON integer. */
  readonly observedGeneration: number;
}

/** Messages are for people: this many clusters are named, the others are counted. */
const NAMED = 5;

/** Why an export is not valid, for its owner. */
export const refusals = {
  NoService: 'There is no Service of this name in the namespace. Create it, or delete the ServiceExport.',
  InvalidServiceType: 'A Service of type ExternalName cannot be exported. Delete the ServiceExport.',
} as const;

/** How messages begin: other programs write conditions of these types, too, and theirs are left alone. */
export const signature = 'Fairlead: ';

/** The conditions of the Multi-Cluster Services API, with its reasons. @param host by which clients reach the service. */
export function exportConditions(
  exported: ExportedService,
  cluster: string,
  host: string,
  generation: number,
): readonly ExportCondition[] {
  const condition = (
    type: ExportCondition['type'],
    status: ExportCondition['status'],
    reason: string,
    message: string,
  ): ExportCondition => ({ type, status, reason, message: `${signature}${message}`, observedGeneration: generation });
  const refusal = Object.hasOwn(exported.refused, cluster) ? exported.refused[cluster] : undefined;
  const none = condition('Conflict', 'False', 'NoConflicts', 'No other cluster exports a different Service.');
  if (refusal !== undefined)
    return [
      condition('Valid', 'False', refusal, refusals[refusal]),
      condition('Ready', 'False', 'Failed', 'It is not exported, because it is not valid.'),
      none,
    ];
  const { conflicts, clusters } = exported;
  return [
    condition('Valid', 'True', 'Valid', 'There is a Service of this name, which can be exported.'),
    condition('Ready', 'True', 'Exported', `Clients of ${host} in all clusters are given its endpoints.`),
    conflicts.length === 0
      ? none
      : condition(
          'Conflict',
          'True',
          conflicts.map(({ reason }) => reason).join(','),
          conflicts.map((conflict) => print(conflict, clusters)).join(' '),
        ),
  ];
}

const differences: Readonly<Record<ExportConflict['reason'], string>> = {
  PortConflict: 'The Services have different ports, all of which are served unless they share a name or a number',
  TypeConflict: 'Some of the Services are headless, and others are not',
  SessionAffinityConflict: 'The Services differ in sessionAffinity',
  SessionAffinityConfigConflict: 'The Services differ in sessionAffinityConfig',
  InternalTrafficPolicyConflict: 'The Services differ in internalTrafficPolicy',
  TrafficDistributionConflict: 'The Services differ in trafficDistribution',
  IPFamilyConflict: 'The Services differ in their IP families',
};

function print({ reason, clusters: others }: ExportConflict, clusters: readonly string[]): string {
  const named = others.slice(0, NAMED).join(', ');
  const more = others.length > NAMED ? ` and ${others.length - NAMED} more` : '';
  return `${differences[reason]}; the oldest ServiceExport, in cluster ${clusters[0]}, decides. ${others.length} of ${clusters.length} clusters differ from it: ${named}${more}.`;
}
