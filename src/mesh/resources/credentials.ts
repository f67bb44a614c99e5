import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import {
  type CredentialObject,
  type CredentialResources,
  type CredentialSource,
  type KeyPair,
  type TrustedRoots,
  clientResources,
  credentialKey,
  serverResources,
  sourceOfResource,
} from '../../model/credential.ts';
import type { ClientTls, DestinationRuleModel, TrafficPolicy } from '../../model/traffic-policy.ts';
import type { CredentialState } from '../../settle/gateway-merge.ts';
import type { Proxies } from '../clients/proxies.ts';
import { type RouterClass } from '../gateways/routers.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import type { Rules } from '../objects/rules.ts';

/** A resource that proxies with a service account ask for. */
export interface CredentialUse {
  /** `namespace/name` */
  readonly account: string;
  readonly resource: string;
}

export interface CredentialDeps {
  readonly inputs: Inputs;
  readonly rules: Rules;
  readonly proxies: Proxies;
  readonly gateways: Collection<GatewayModel>;
  readonly routers: Collection<RouterClass>;
}

export interface Credentials {
  /** Each once. */
  readonly uses: Collection<CredentialUse>;
  /** By name of the resource. */
  readonly byResource: Index<CredentialUse>;
  /** What must be read for them. */
  readonly wanted: Collection<CredentialObject>;
  /** Service accounts whose right to have Secrets must be known. */
  readonly wantedAccess: Collection<true>;
}

/** Which Secrets and ConfigMaps the connected proxies need, as Gateways and DestinationRules name them. */
export function declareCredentials(graph: Graph, deps: CredentialDeps): Credentials {
  const ofGateways = graph.derive(
    'gateway credentials',
    deps.routers,
    (key, router, read, emit: Emit<CredentialUse>) => {
      if (router.account === '') return;
      const named = router.gateways.flatMap((gateway) => resourcesOfGateway(read.get(deps.gateways, gateway)));
      for (const resource of new Set(named)) emit(`${key}|${resource}`, { account: router.account, resource });
    },
  );
  const rules = graph.index('rules with credentials', deps.rules.single, (_, rule) =>
    resourcesOfRule(rule).length === 0 ? [] : rule.exportTo,
  );
  const ofRules = graph.derive(
    'rule credentials',
    deps.proxies.byAccount,
    (account, _, read, emit: Emit<CredentialUse>) => {
      const [namespace = ''] = account.split('/');
      const visible = ['*', namespace].flatMap((to) => read.group(rules, to));
      const named = visible.flatMap(({ value }) => resourcesOfRule(value));
      for (const resource of new Set(named)) emit(`${account}|${resource}`, { account, resource });
    },
  );
  const each = graph.index('credential uses', [ofGateways, ofRules], (_, { account, resource }) => [
    `${account}|${resource}`,
  ]);
  const uses = graph.derive('credentials in use', each, (key, [first], _, emit: Emit<CredentialUse>) =>
    emit(key, first.value),
  );
  const byObject = graph.index('credentials by object', uses, (_, use) => {
    const source = sourceOf(use);
    return 'problem' in source ? [] : source.objects.map(credentialKey);
  });
  return {
    uses,
    byResource: graph.index('credentials by resource', uses, (_, { resource }) => [resource]),
    wanted: graph.derive('wantedCredentials', byObject, (key, members, read, emit: Emit<CredentialObject>) => {
      for (const { value } of members) {
        const source = sourceOf(value);
        if ('problem' in source || !mayHave(read, deps.inputs, value.account, source)) continue;
        const object = source.objects.find((one) => credentialKey(one) === key);
        if (object !== undefined) return emit(key, object);
      }
    }),
    wantedAccess: graph.derive(
      'wantedSecretAccess',
      graph.index('secret accounts', uses, (_, use) => {
        const source = sourceOf(use);
        return 'problem' in source || source.part === 'roots' ? [] : [use.account];
      }),
      (account, _, __, emit: Emit<true>) => emit(account, true),
    ),
  };
}

/** What proxies with an account get under a name; the account may be empty. */
export function credentialState(
  read: Reader,
  inputs: Inputs,
  { account, resource }: CredentialUse,
  part: CredentialSource['part'],
): CredentialState<KeyPair | TrustedRoots> {
  const assumes = optionsOf(read, inputs).assumesCredentials === true;
  if (account === '' && !assumes) return { problem: 'Only proxies that connect on the secure port get Secrets' };
  const source = sourceOf({ account, resource });
  if ('problem' in source)
    return source.isForeign && assumes ? {} : { problem: `${quote(resource)} ${source.problem}` };
  if (source.part !== part) {
    const what = part === 'pair' ? 'CA certificates, not a certificate with its key' : 'no CA certificates';
    return { problem: `${quote(resource)} names ${what}` };
  }
  const allowed = mayHave(read, inputs, account, source);
  if (allowed === undefined) return { isPending: true };
  if (!allowed) {
    const [namespace = ''] = account.split('/');
    return {
      problem: `Service account ${account} must be allowed to list Secrets in namespace ${namespace}`,
    };
  }
  for (const object of source.objects) {
    const credential = read.get(inputs.credentials, credentialKey(object));
    if (credential === undefined) return assumes ? {} : { isPending: true };
    if (!credential.exists) continue;
    const { content, problem } = credential[part];
    return {
      ...(content !== undefined && { content }),
      ...(problem !== undefined && { problem: `${printObject(object)} ${problem}` }),
    };
  }
  const [last] = source.objects.slice(-1);
  return { problem: `${printObject(last!)} does not exist` };
}

/** Undefined: not known yet. Authorities are not secret. */
function mayHave(read: Reader, inputs: Inputs, account: string, { part }: CredentialSource): boolean | undefined {
  if (part === 'roots' || optionsOf(read, inputs).assumesCredentials === true) return true;
  return read.get(inputs.secretAccess, account)?.allowed;
}

export function sourceOf({ account, resource }: CredentialUse): ReturnType<typeof sourceOfResource> {
  return sourceOfResource(resource, account.split('/', 1)[0]!);
}

function printObject({ kind, namespace, name }: CredentialObject): string {
  return `${kind} ${namespace}/${name}`;
}

function resourcesOfGateway(gateway: GatewayModel | undefined): readonly string[] {
  return (gateway?.servers ?? []).flatMap(({ serves }) =>
    serves.kind === 'https' || serves.kind === 'tls' ? namesOf(serverResources(serves.tls)) : [],
  );
}

/** Everything that clients with this rule ask for. */
export function resourcesOfRule(rule: DestinationRuleModel): readonly string[] {
  return credentialsOfRule(rule).flatMap((tls) => namesOf(clientResources(tls)));
}

/** The rule's TLS settings that name a credential. */
export function credentialsOfRule(rule: DestinationRuleModel): readonly ClientTls[] {
  const policiesOf = ({
    policy,
    portPolicies,
  }: Pick<DestinationRuleModel, 'policy' | 'portPolicies'>): TrafficPolicy[] => [
    policy,
    ...Object.values(portPolicies),
  ];
  return [...policiesOf(rule), ...rule.subsets.flatMap(policiesOf)].flatMap(({ tls }) =>
    tls === undefined || tls.credentialName === '' ? [] : [tls],
  );
}

function namesOf({ pairs, roots }: CredentialResources): readonly string[] {
  return roots === '' ? pairs : [...pairs, roots];
}
