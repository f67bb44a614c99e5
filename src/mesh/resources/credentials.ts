import { quote } from '../../api/quote.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import {
  type AccountKey,
  type Credential,
  type CredentialObject,
  GRANTS,
  type CredentialSource,
  type KeyPair,
  type TrustedRoots,
  credentialKey,
  grants,
  parseAccountKey,
  parseCredentialKey,
  printAccount,
  sourceOfResource,
} from '../../model/credential.ts';
import type { CredentialState } from '../../settle/gateway-merge.ts';
import type { Proxies } from '../clients/proxies.ts';
import { type RouterClass } from '../gateways/routers.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import type { Rules } from '../objects/rules.ts';
import { type Settings, settingOf } from '../settings.ts';
import { declareNamedByGateways, declareNamedByRules, namedByRules, resourcesOfGateway } from './named-credentials.ts';

/** A resource that proxies with a service account ask for. */
export interface CredentialUse {
  readonly account: AccountKey;
  readonly resource: string;
}

/** The same, and the namespaces of the objects that name it. Sorted. */
export interface NamedUse extends CredentialUse {
  readonly by: readonly string[];
}

/** What is to be read, and the namespaces of the objects that name it. Sorted. */
export interface WantedCredential extends CredentialObject {
  readonly by: readonly string[];
}

export interface CredentialDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly rules: Rules;
  readonly proxies: Proxies;
  readonly gateways: Collection<GatewayModel>;
  readonly routers: Collection<RouterClass>;
}

export interface Credentials {
  /** Each once. */
  readonly uses: Collection<NamedUse>;
  /** By name of the resource. */
  readonly byResource: Index<NamedUse>;
  /** What must be read for them. */
  readonly wanted: Collection<WantedCredential>;
  /** Objects that name more than they may. */
  readonly problems: readonly Collection<HasProblems>[];
  /** Service accounts whose right to have Secrets must be known. */
  readonly wantedAccess: Collection<true>;
}

/** Which Secrets and ConfigMaps the connected proxies need, as Gateways and DestinationRules name them. */
export function declareCredentials(graph: Graph, deps: CredentialDeps): Credentials {
  const namedByGateways = declareNamedByGateways(graph, deps.gateways);
  const ofGateways = graph.derive('gateway credentials', deps.routers, (key, router, read, emit: Emit<NamedUse>) => {
    const { account } = router;
    if (account === '') return;
    const hasProvider =
      router.traits.credentialSocket || settingOf(read, deps.settings.security).secretProvider !== undefined;
    const gateways = router.gateways.flatMap((one) => read.get(deps.gateways, one) ?? []);
    const namespaces = new Map<string, Set<string>>();
    for (const [namespace, own] of Map.groupBy(gateways, (gateway) => gateway.namespace)) {
      const allowed = new Set(read.get(namedByGateways, namespace)?.resources);
      for (const resource of own.flatMap((gateway) => resourcesOfGateway(gateway, hasProvider)))
        if (allowed.has(resource)) namespaces.set(resource, (namespaces.get(resource) ?? new Set()).add(namespace));
    }
    for (const [resource, by] of namespaces) emit(`${key}|${resource}`, { account, resource, by: [...by] });
  });
  const byRules = declareNamedByRules(graph, deps.rules);
  const ofRules = graph.derive(
    'rule credentials',
    deps.proxies.byAccount,
    (account, proxies, read, emit: Emit<NamedUse>) => {
      const hasProvider = proxies.every(({ value }) => !('error' in value) && value.scope.traits.credentialSocket);
      const { namespace } = parseAccountKey(account);
      const namespaces = new Map<string, string[]>();
      for (const { by, resources, unprovided } of namedByRules(read, byRules.to, namespace))
        for (const resource of hasProvider ? unprovided : resources)
          namespaces.set(resource, [...(namespaces.get(resource) ?? []), by]);
      for (const [resource, by] of namespaces) emit(`${account}|${resource}`, { account, resource, by });
    },
  );
  const each = graph.index('credential uses', [ofGateways, ofRules], (_, { account, resource }) => [
    `${account}|${resource}`,
  ]);
  const uses = graph.derive('credentials in use', each, (key, members, _, emit: Emit<NamedUse>) =>
    emit(key, { ...members[0].value, by: distinct(members.flatMap(({ value }) => value.by)) }),
  );
  const byObject = graph.index('credentials by object', uses, (_, use) => {
    const source = sourceOf(use);
    return 'problem' in source ? [] : source.objects.map(credentialKey);
  });
  return {
    uses,
    problems: [namedByGateways, byRules.named],
    byResource: graph.index('credentials by resource', uses, (_, { resource }) => [resource]),
    wanted: graph.derive('wantedCredentials', byObject, (key, members, read, emit: Emit<WantedCredential>) => {
      const by = members.flatMap(({ value }) => {
        const source = sourceOf(value);
        return 'problem' in source || !mayHave(read, deps.inputs, value.account, source) ? [] : value.by;
      });
      if (by.length > 0) emit(key, { ...parseCredentialKey(key), by: distinct(by) });
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

/** What proxies with an account get under a name, for this Gateway if one names it; the account may be empty. */
export function credentialState(
  read: Reader,
  inputs: Inputs,
  { account, resource }: CredentialUse,
  part: CredentialSource['part'],
  gateway?: Pick<GatewayModel, 'namespace' | 'name'>,
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
    const of = parseAccountKey(account);
    return {
      problem: `Service account ${printAccount(of)} must be allowed to list Secrets in namespace ${of.namespace}`,
    };
  }
  for (const object of source.objects) {
    const credential = read.get(inputs.credentials, credentialKey(object));
    if (credential === undefined) return assumes ? {} : { isPending: true };
    if (!credential.exists) continue;
    if (part === 'pair' && gateway !== undefined && isWithheld(read, inputs, object, credential, gateway))
      return {
        problem:
          `${printObject(object)} is not granted to Gateways in namespace ${gateway.namespace}; ` +
          `name that namespace in its annotation ${GRANTS}, or name a Secret that has it`,
      };
    const { content, problem } = credential[part];
    return {
      ...(content !== undefined && { content }),
      ...(problem !== undefined && { problem: `${printObject(object)} ${problem}` }),
    };
  }
  const [last] = source.objects.slice(-1);
  return { problem: `${printObject(last!)} does not exist` };
}

/** Whether a Gateway of another namespace needs a grant, and has none. What is in the root namespace may use all. */
function isWithheld(
  read: Reader,
  inputs: Inputs,
  object: CredentialObject,
  credential: Credential,
  gateway: Pick<GatewayModel, 'namespace' | 'name'>,
): boolean {
  const { gatewaySecretGrants, rootNamespace } = optionsOf(read, inputs);
  if (!gatewaySecretGrants || [object.namespace, rootNamespace].includes(gateway.namespace)) return false;
  return !grants(credential, gateway);
}

/** Undefined: not known yet. Authorities are not secret. */
function mayHave(read: Reader, inputs: Inputs, account: string, { part }: CredentialSource): boolean | undefined {
  if (part === 'roots' || optionsOf(read, inputs).assumesCredentials === true) return true;
  return read.get(inputs.secretAccess, account)?.allowed;
}

export function sourceOf({ account, resource }: CredentialUse): ReturnType<typeof sourceOfResource> {
  const { namespace, cluster } = parseAccountKey(account);
  const source = sourceOfResource(resource, namespace);
  if ('problem' in source || cluster === undefined) return source;
  return { ...source, objects: source.objects.map((object) => ({ ...object, cluster })) };
}

function printObject({ kind, ...object }: CredentialObject): string {
  return `${kind} ${printAccount(object)}`;
}

const distinct = (texts: readonly string[]): string[] => [...new Set(texts)].sort();
