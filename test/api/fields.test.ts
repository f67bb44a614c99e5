import { describe, expect, test } from 'vitest';
import type { DestinationRule } from '../../src/api/gen/destination-rule.gen.ts';
import { definitions } from '../../src/api/gen/schemas.gen.ts';
import type { CustomKindName } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Problem } from '../../src/api/problem.ts';
import type { SchemaNode } from '../../src/api/schema-node.ts';
import { reconcileDestinationRule } from '../../src/reconcilers/destination-rule/destination-rule.ts';
import { reconcileGateway } from '../../src/reconcilers/gateway/gateway.ts';
import { reconcileServiceEntry } from '../../src/reconcilers/service-entry/service-entry.ts';
import type { AuthorizationPolicy } from '../../src/api/gen/authorization-policy.gen.ts';
import type { PeerAuthentication } from '../../src/api/gen/peer-authentication.gen.ts';
import type { RequestAuthentication } from '../../src/api/gen/request-authentication.gen.ts';
import { reconcileAuthorizationPolicy } from '../../src/reconcilers/security/authorization-policy.ts';
import { reconcilePeerAuthentication } from '../../src/reconcilers/security/peer-authentication.ts';
import { reconcileRequestAuthentication } from '../../src/reconcilers/security/request-authentication.ts';
import { reconcileProxyConfig } from '../../src/reconcilers/proxy-config/proxy-config.ts';
import { reconcileSidecar } from '../../src/reconcilers/sidecar/sidecar.ts';
import { reconcileVirtualService } from '../../src/reconcilers/virtual-service/virtual-service.ts';
import { reconcileWorkloadEntry } from '../../src/reconcilers/core/workload.ts';
import type { UnsupportedField } from '../../src/reconcilers/unsupported-field.ts';
import { unsupportedFields } from '../../src/reconcilers/unsupported-fields.ts';
import { readCorpus } from './corpus.ts';

type Custom = KubernetesObject & { readonly spec?: unknown };
type Path = readonly (string | number)[];

/** A value of an object, and what the schema calls it: `Server.bind`, `HTTPRoute.timeout`. */
interface Place {
  readonly path: Path;
  readonly field: string;
}

const context = {
  source: 'test',
  cluster: 'test',
  domainSuffix: 'cluster.local',
  trustDomain: 'cluster.local',
  rootNamespace: 'istio-system',
  defaultExportTo: ['*'],
};
const reconcilers: Readonly<Record<CustomKindName, (object: Custom) => { readonly problems: readonly Problem[] }>> = {
  VirtualService: (object) => reconcileVirtualService(object, context),
  DestinationRule: (object) => reconcileDestinationRule(object as DestinationRule, context),
  ServiceEntry: (object) => reconcileServiceEntry(object, context),
  Gateway: (object) => reconcileGateway(object, context),
  Sidecar: (object) => reconcileSidecar(object, context),
  ProxyConfig: (object) => reconcileProxyConfig(object, context.source),
  WorkloadEntry: (object) => reconcileWorkloadEntry(object, context),
  PeerAuthentication: (object) => reconcilePeerAuthentication(object as PeerAuthentication, context.source),
  RequestAuthentication: (object) => reconcileRequestAuthentication(object as RequestAuthentication, context.source),
  AuthorizationPolicy: (object) => reconcileAuthorizationPolicy(object as AuthorizationPolicy, context.source),
};

/** Fields that a valid object cannot set. */
const mustBeEmpty = new Set(['PolicyTargetReference.namespace']);

const valid = readCorpus()
  .filter(({ fields }) => fields.length === 0)
  .map(({ object }): Custom => ({ ...object, metadata: { namespace: 'shop', ...object.metadata } }));

describe.each(Object.entries(reconcilers))('a %s', (kind, reconcile) => {
  const objects = valid.filter((object) => object.kind === kind);

  test('has no field that is silently ignored: each one changes the model, or its owner is told', () => {
    const told = new Set<string>();
    for (const object of objects) {
      const whole = JSON.stringify(reconcile(object));
      for (const { path, field } of placesIn(object.spec, { $ref: `#/definitions/${kind}Spec` }, ['spec']))
        if (!told.has(field) && JSON.stringify(reconcile(without(object, path))) !== whole) told.add(field);
    }
    // What fails here: read the field, or name it in `unsupported-fields.ts`, and let a valid object of the corpus use it.
    expect(fieldsOf(kind).filter((field) => !told.has(field) && !mustBeEmpty.has(field))).toEqual([]);
  });
});

/** Every member of a message within the value, leaves and messages alike. */
function* placesIn(value: unknown, schema: SchemaNode, path: Path): Generator<Place> {
  const { properties, items, additionalProperties, name } = resolve(schema);
  if (Array.isArray(value) && items !== undefined)
    for (const [index, element] of value.entries()) yield* placesIn(element, items, [...path, index]);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  for (const [key, member] of Object.entries(value)) {
    const at = [...path, key];
    const property = properties?.[key];
    if (property !== undefined) yield { path: at, field: `${name}.${key}` };
    const inner = property ?? additionalProperties;
    if (inner !== undefined) yield* placesIn(member, inner, at);
  }
}

/** All fields of the messages of a kind. What is within a field that has no effect needs no second word. */
function fieldsOf(kind: string): readonly string[] {
  const found = new Set<string>();
  const visited = new Set<string>();
  const visit = (schema: SchemaNode, path: string): void => {
    const { name, properties = {}, items, additionalProperties } = resolve(schema);
    if (unsupportedFields.some((listed) => listed.kind === kind && listed.field === path && isWhole(listed))) return;
    if (items !== undefined) visit(items, `${path}[]`);
    if (additionalProperties !== undefined) visit(additionalProperties, `${path}{}`);
    if (name !== undefined && visited.has(name)) return;
    if (name !== undefined) visited.add(name);
    for (const [key, property] of Object.entries(properties)) {
      found.add(`${name}.${key}`);
      visit(property, `${path}.${key}`);
    }
  };
  visit({ $ref: `#/definitions/${kind}Spec` }, 'spec');
  return [...found];
}

/** Some entries are about one value of a field only. */
function isWhole({ value }: UnsupportedField): boolean {
  return value === undefined;
}

function resolve(schema: SchemaNode): SchemaNode & { readonly name?: string } {
  if (schema.$ref === undefined) return schema;
  const name = schema.$ref.slice('#/definitions/'.length);
  return { ...definitions[name], name };
}

function without(object: Custom, path: Path): Custom {
  const copy = structuredClone(object);
  let parent: unknown = copy;
  for (const step of path.slice(0, -1)) parent = (parent as Record<string | number, unknown>)[step];
  delete (parent as Record<string | number, unknown>)[path.at(-1)!];
  return copy;
}
