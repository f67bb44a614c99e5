import { type KubernetesObject, objectKey, refOf } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { compareAge, printWinner } from '../../model/age.ts';
import { type Labels, selects } from '../../model/labels.ts';
import { type EgressListener, type IngressListener, type SidecarModel, everything } from '../../model/sidecar.ts';
import { readConnectionPool } from '../destination-rule/pool.ts';
import { quote } from '../../api/quote.ts';
import { Field, Findings } from '../field.ts';
import { readEgress } from './egress.ts';
import { readIngress } from './ingress.ts';
import { findUnsupported } from '../unsupported-fields.ts';
import { readDestination } from '../virtual-service/names.ts';

export interface SidecarContext {
  readonly source: string;
  readonly domainSuffix: string;
}

export interface ReconciledSidecar {
  /** The model; none if the object is not valid. */
  readonly models: readonly SidecarModel[];
  readonly problems: readonly Problem[];
}

export function reconcileSidecar(
  object: KubernetesObject & { readonly spec?: unknown },
  context: SidecarContext,
): ReconciledSidecar {
  const { name, namespace = '', creationTimestamp = '' } = object.metadata;
  const findings = new Findings(refOf(context.source, object));
  const spec = new Field(object.spec, 'spec', findings).expectObject();
  const pool = readConnectionPool(spec.get('inboundConnectionPool'));
  const selector = readSelector(spec.get('workloadSelector').expectObject());
  const egress = readEgress(spec.get('egress'));
  const ingress = apartFrom(egress, readIngress(spec.get('ingress')), findings);
  const policy = readOutboundPolicy(spec.get('outboundTrafficPolicy').expectObject(), namespace, context);
  if (egress.length === 0 && ingress.length === 0 && policy === undefined && pool === undefined)
    spec.invalid('must have at least one of egress, ingress, outboundTrafficPolicy and inboundConnectionPool.');

  const model: SidecarModel = {
    key: objectKey(context.source, namespace, name),
    ref: findings.object,
    name,
    namespace,
    createdAt: creationTimestamp,
    ...(selector === undefined ? {} : { workloadSelector: selector }),
    egress: egress.length === 0 ? everything : egress,
    ingress,
    ...(policy === undefined ? {} : { outboundTrafficPolicy: policy }),
    ...(pool === undefined ? {} : { inboundConnectionPool: pool }),
  };
  return {
    models: findings.invalid ? [] : [model],
    problems: [...findings.problems, ...findUnsupported(findings.object, object.spec)],
  };
}

/** Two listeners cannot share an address and port, even if one does not bind it: the egress listener stays. */
function apartFrom(
  egress: readonly EgressListener[],
  ingress: readonly IngressListener[],
  findings: Findings,
): readonly IngressListener[] {
  return ingress.filter(({ bind, bindToPort, port }, i) => {
    const shared = egress.some(
      (listener) => bindToPort && listener.port?.number === port && egressAddresses(listener).includes(bind),
    );
    if (shared)
      findings.report(
        `spec.ingress[${i}].port`,
        'Ineffective',
        'is also the port of an egress listener at the same address, which is used; give one of them another port or bind.',
      );
    return !shared;
  });
}

/** Where it listens: its bind address; else loopback if it binds, or all addresses if connections are redirected. */
function egressAddresses({ bind, bindToPort }: EgressListener): readonly string[] {
  if (bind !== '') return [bind];
  return bindToPort ? ['127.0.0.1', '::1'] : ['0.0.0.0', '::'];
}

function readSelector(field: Field): Labels | undefined {
  if (!field.isSet) return undefined;
  const labels = field.get('labels');
  for (const [key, value] of labels.entries())
    if (key === '' || value.string().includes('*')) value.invalid('needs a name and a value without *.');
  return labels.stringMap();
}

function readOutboundPolicy(
  field: Field,
  namespace: string,
  context: SidecarContext,
): SidecarModel['outboundTrafficPolicy'] {
  if (!field.isSet) return undefined;
  // The first value of the API's enum: what an object without a mode has always meant.
  const mode = field.get('mode').oneOf('REGISTRY_ONLY', 'ALLOW_ANY');
  const proxy = field.get('egressProxy').expectObject();
  if (!proxy.isSet) return { mode };
  if (mode !== 'ALLOW_ANY') proxy.invalid('requires mode ALLOW_ANY.');
  const destination = readDestination(proxy, { namespace, domainSuffix: context.domainSuffix });
  if (destination.port === undefined) proxy.get('port').invalid('must name the port of the egress proxy.');
  return { mode, egressProxy: destination };
}

/**
 * The Sidecar of a workload: the oldest in its namespace whose selector matches, else the oldest in its namespace
 * without a selector, else the one in the root namespace. Sidecars are not merged. Routers have none.
 */
export function selectSidecar(
  candidates: { readonly own: readonly SidecarModel[]; readonly root: readonly SidecarModel[] },
  labels: Labels,
): SidecarModel | undefined {
  const own = [...candidates.own].sort(compareAge);
  return (
    own.find(({ workloadSelector }) => workloadSelector !== undefined && selects(workloadSelector, labels)) ??
    own.find(({ workloadSelector }) => workloadSelector === undefined) ??
    [...candidates.root].sort(compareAge).find(({ workloadSelector }) => workloadSelector === undefined)
  );
}

/** For messages: Sidecars of a namespace that never apply because of an older one. */
export function shadowedSidecars(own: readonly SidecarModel[]): readonly { loser: SidecarModel; message: string }[] {
  const byAge = [...own].sort(compareAge);
  const [winner, ...losers] = byAge.filter(({ workloadSelector }) => workloadSelector === undefined);
  const without = losers.map((loser) => ({
    loser,
    message: `Of the Sidecars in this namespace without a workloadSelector, ${printWinner(`Sidecar ${quote(winner!.name)}`, winner!, loser)} is used; remove one of them.`,
  }));
  const selecting = byAge.filter(({ workloadSelector }) => workloadSelector !== undefined).slice(0, mostCompared);
  const within = selecting.flatMap((loser, i) => {
    const wider = selecting
      .slice(0, i)
      .find(({ workloadSelector = {} }) => selects(workloadSelector, loser.workloadSelector ?? {}));
    if (wider === undefined) return [];
    const message = `Of the Sidecars for these workloads, ${printWinner(`Sidecar ${quote(wider.name)}`, wider, loser)} is used; remove one of them, or select other workloads.`;
    return [{ loser, message }];
  });
  return [...without, ...within];
}

/** Sidecars with selectors in one namespace that are compared with each other. */
const mostCompared = 200;
