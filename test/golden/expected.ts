import { Document, visit } from 'yaml';
import { bytesOf } from '../../src/ads/wire/bytes-of.ts';
import { type EncodedResource, type LeafPart, leavesOf } from '../../src/ads/store/resource.ts';
import { type ObjectRef, printRef } from '../../src/api/object.ts';
import { Trace } from '../../src/envoy/encode/trace.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { NAME_TABLE } from '../../src/model/named-host.ts';
import { readNameTable } from '../harness/names.ts';
import { type Json, typeOfUrl } from '../../src/envoy/encode/proto.ts';
import type { Snapshot } from '../../src/debug/snapshot.ts';
import { type EnvoyNode, TestMesh, connectedProxy, testProtos } from '../harness/mesh.ts';
import type { GoldenCase } from './case.ts';
import { meshOf } from './mesh-of.ts';

const KINDS = { clusters: 'cds', endpoints: 'eds', listeners: 'lds', routes: 'rds', secrets: 'sds' } as const;

/** The text of the expected file: what a mesh that holds the case serves, and says of its objects. */
export function printExpected(mesh: TestMesh, golden: GoldenCase): string {
  const { proxies, objects, refused } = golden;
  const trace = new Trace();
  // What something was made from is computed by whoever asks: it is not kept up to date.
  const traced = meshOf(golden, { encoder: { trace } });
  const served = [...proxies].map(([proxy, node]) => {
    const snapshot = mesh.snapshot(proxy);
    // What every proxy of its kind has is shown once: by the cases without objects.
    const usual = objects.length === 0 ? new Map<string, string>() : emptyMesh(node);
    return [
      proxy,
      {
        ...rejection(mesh, proxy),
        ...printSnapshot(snapshot, usual),
        ...namesFor(mesh, proxy, node),
        origins: originsFor(traced, trace, proxy),
      },
    ] as const;
  });
  return print({
    ...(refused.size > 0 && { refusedBySchema: Object.fromEntries(refused) }),
    problems: problemsOf(mesh),
    proxies: Object.fromEntries(served),
  });
}

/** YAML in which what is short is on one line. */
function print(value: object): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document.contents, {
    Collection: (_, node) => {
      node.flow = JSON.stringify(node).length <= 100;
      return node.flow ? visit.SKIP : undefined;
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function rejection(mesh: TestMesh, proxy: string): object {
  const view = mesh.mesh.proxies.get(proxy);
  return view !== undefined && 'error' in view ? { rejected: view.error } : {};
}

function printSnapshot(snapshot: Snapshot, usual: ReadonlyMap<string, string>): object {
  const isUsual = (resource: EncodedResource) => usual.get(keyOf(resource)) === resource.version;
  const shown = Object.entries(KINDS)
    // Few have secrets.
    .filter(([, kind]) => kind !== 'sds' || snapshot.sds.length > 0)
    .map(([title, kind]) => [
      title,
      snapshot[kind].filter((resource) => !isUsual(resource)).map((resource) => jsonOf(resource)),
    ]);
  const all = Object.values(KINDS).flatMap((kind) => snapshot[kind]);
  return {
    ...(usual.size > 0 && { asWithoutObjects: all.filter(isUsual).map(({ name }) => name) }),
    ...Object.fromEntries(shown),
  };
}

/** The name table of a proxy whose agent asks for one. */
function namesFor(mesh: TestMesh, proxy: string, { metadata }: EnvoyNode): object {
  if (metadata?.['DNS_CAPTURE'] !== 'true') return {};
  mesh.commit([mesh.mesh.inputs.asked.write(proxy, { typeUrls: [NAME_TABLE] })]);
  const table = mesh.resources(proxy).find(({ typeUrl }) => typeUrl === NAME_TABLE);
  return table === undefined ? {} : { names: readNameTable(bytesOf(table.body)) };
}

const keyOf = ({ typeUrl, name }: EncodedResource): string => `${typeUrl} ${name}`;

function emptyMesh(node: EnvoyNode): Map<string, string> {
  const mesh = new TestMesh({ oracle: false });
  mesh.connect(connectedProxy('proxy', node));
  const { cds, eds, lds, rds } = mesh.snapshot('proxy');
  return new Map([...cds, ...eds, ...lds, ...rds].map((resource) => [keyOf(resource), resource.version]));
}

function jsonOf({ typeUrl, body }: EncodedResource): Json {
  return testProtos().toJson(typeOfUrl(typeUrl), bytesOf(body));
}

function originsFor(mesh: TestMesh, trace: Trace, proxy: string): object {
  const found = mesh.resources(proxy).flatMap((resource) => originsOf(resource, trace));
  return Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Of tables by virtual host, of all else by resource. What comes from no object is left out. */
function originsOf(resource: EncodedResource, trace: Trace): [string, string[]][] {
  const { typeUrl, name, body } = resource;
  const type = typeOfUrl(typeUrl);
  const leaves = [...leavesOf(body)];
  const places: [string, readonly ObjectRef[]][] =
    type === types.route
      ? leaves.map((leaf) => [`${name}/${virtualHostIn(leaf.bytes)}`, objectsOf(trace, leaf)])
      : [[name, leaves.flatMap((leaf) => objectsOf(trace, leaf))]];
  return places
    .filter(([, origins]) => origins.length > 0)
    .map(([place, origins]) => [
      `${type.slice(type.lastIndexOf('.') + 1)} ${place}`,
      [...new Set(origins.map(printRef))],
    ]);
}

function objectsOf(trace: Trace, leaf: LeafPart): readonly ObjectRef[] {
  return [...trace.of(leaf), ...trace.routesOf(leaf).flat()].map(({ object }) => object);
}

/** A leaf of a table is a table with one virtual host. */
function virtualHostIn(bytes: Uint8Array): string {
  const { virtualHosts = [] } = testProtos().decode(types.route, bytes);
  return virtualHosts[0]?.name ?? '';
}

function problemsOf({ mesh }: TestMesh): object {
  const found = [...mesh.problems.byObject.entries()].map(([, problems]) => [
    printRef(problems[0]!.object),
    problems.map(({ field, reason, message }) => ({ field, reason, message })),
  ]);
  return Object.fromEntries(found.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}
