import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readProxyConfig } from '../../src/agent/settings/proxy-config.ts';
import { meshDefinitions } from '../../src/api/gen/mesh-config.gen.ts';
import type { Json } from '../../src/api/json.ts';
import type { SchemaNode } from '../../src/api/schema-node.ts';
import { loadInjection } from '../../src/injection/configuration.ts';
import { createInjector } from '../../src/injection/injector.ts';
import { reconcileMeshConfig } from '../../src/reconcilers/mesh-config/mesh-config.ts';
import { reconcileMeshNetworks } from '../../src/reconcilers/mesh-config/mesh-networks.ts';
import { readNode } from '../../src/reconcilers/proxy-node.ts';

/** Without `proxyConfig`, which is for the agent. */
const TEMPLATE = `
spec:
  containers:
    - name: istio-proxy
      image: \${image}
      args: \${interceptionArgs}
      env:
        - \${proxyEnv}
        - { name: OF_MESH, value: "\${discoveryAddress} \${interceptionMode} \${meshId} \${trustDomain} \${statusPort}" }
`;
const loaded = loadInjection(
  new Map([
    ['config.yaml', 'proxy: {image: p, imageTypes: {debug: d}, discoveryAddress: "f:1"}'],
    ['sidecar.yaml', TEMPLATE],
  ]),
);
const injector = createInjector('config' in loaded ? loaded.config : expect.fail());

/** All that anybody makes of a mesh config, and what its owner is told. */
function readMesh(mesh: Json): unknown {
  const defaultConfig = (mesh['defaultConfig'] ?? {}) as Json;
  const node = readNode(
    {
      nodeId: 'sidecar~10.1.0.1~web-1.shop~shop.svc.cluster.local',
      metadata: { PROXY_CONFIG: defaultConfig },
      locality: { region: '', zone: '', subZone: '' },
      extensions: [],
    },
    { namespace: 'default', domainSuffix: 'cluster.local' },
  );
  const pod = {
    metadata: { name: 'web', annotations: { 'prometheus.io/scrape': 'true' } },
    spec: { containers: [{ name: 'web', image: 'x', ports: [{ containerPort: 80 }] }] },
  };
  const namespace = { name: 'shop', labels: { 'istio-injection': 'enabled' } };
  const injected = injector.inject({ pod, namespace, meshConfig: mesh, parameters: { env: {} } });
  return [reconcileMeshConfig(JSON.stringify(mesh)), readAgent(defaultConfig), node, injected];
}

/** Without what it only passes on. */
function readAgent(defaultConfig: Json): unknown {
  try {
    const { whole: _, ...read } = readProxyConfig([{ from: 'mesh', text: JSON.stringify(defaultConfig) }]).config;
    return read;
  } catch (error) {
    return String(error);
  }
}

test.each([
  ['MeshConfig', ['all', 'other'], readMesh],
  ['MeshNetworks', ['networks'], (networks: Json) => reconcileMeshNetworks(JSON.stringify(networks))],
] as const)(
  'a %s has no field that is silently ignored: each one is read, or its owner is told',
  (name, files, read) => {
    const told = new Set<string>();
    for (const file of files) {
      const text = readFileSync(join(import.meta.dirname, 'mesh-config', `${file}.yaml`), 'utf8');
      const mesh = parse(text) as Json;
      const whole = print(read(mesh));
      for (const { at, field } of placesIn(mesh, { $ref: `#/definitions/${name}` }, [], ''))
        if (!told.has(field) && print(read(without(mesh, at))) !== whole) told.add(field);
    }
    // What fails here: read the field, or name it in `unsupported-mesh-fields.ts`, and let a file of `mesh-config` set it.
    expect(fieldsOf({ $ref: `#/definitions/${name}` }, '').filter((field) => !told.has(field))).toEqual([]);
  },
);

type Path = readonly (string | number)[];

function* placesIn(
  value: unknown,
  schema: SchemaNode,
  at: Path,
  field: string,
): Generator<{ at: Path; field: string }> {
  const { properties, items, additionalProperties } = resolve(schema);
  if (Array.isArray(value)) {
    for (const [i, each] of value.entries()) if (items) yield* placesIn(each, items, [...at, i], `${field}[]`);
  } else if (typeof value === 'object' && value !== null)
    for (const [key, member] of Object.entries(value)) {
      const [inner, name] = properties ? [properties[key], `${field}.${key}`] : [additionalProperties, `${field}{}`];
      if (properties) yield { at: [...at, key], field: name };
      if (inner) yield* placesIn(member, inner, [...at, key], name);
    }
}

/** Nothing refers to itself. */
function fieldsOf(schema: SchemaNode, field: string): readonly string[] {
  const { properties = {}, items, additionalProperties } = resolve(schema);
  return [
    ...Object.entries(properties).flatMap(([key, inner]) => [`${field}.${key}`, ...fieldsOf(inner, `${field}.${key}`)]),
    ...(items ? fieldsOf(items, `${field}[]`) : []),
    ...(additionalProperties ? fieldsOf(additionalProperties, `${field}{}`) : []),
  ];
}

function resolve(schema: SchemaNode): SchemaNode {
  if (schema.$ref === undefined) return schema;
  return meshDefinitions[schema.$ref.slice('#/definitions/'.length)]!;
}

function without(value: Json, at: Path): Json {
  const copy = structuredClone(value);
  let parent: unknown = copy;
  for (const step of at.slice(0, -1)) parent = (parent as Record<string | number, unknown>)[step];
  delete (parent as Record<string | number, unknown>)[at.at(-1)!];
  return copy;
}

function print(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (each instanceof Map ? [...each] : each));
}
