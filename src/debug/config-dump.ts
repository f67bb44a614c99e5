import type { GivenType } from '../ads/transport/given.ts';
import type { EncodedResource } from '../ads/store/resource.ts';
import type { Protos } from '../envoy/encode/proto.ts';
import { typeUrl } from '../envoy/encode/proto.ts';
import { leaf, node, resource } from '../envoy/encode/resource.ts';
import type { DumpOptions } from '../ops/debug/pages.ts';
import { type ServedType, servedTypes } from '../envoy/encode/served-types.ts';
import { shownBytes } from './snapshot.ts';
import { resourceJson } from './resource-json.ts';

/** A part of Envoy's config dump (`/config_dump`), in the order in which Istio's tools expect them. */
interface Section {
  readonly type: string;
  /** What it has of one resource; absent: it is always empty. */
  readonly of?: {
    readonly served: ServedType;
    readonly field: string;
    readonly entry: (name: string, version: string, message: unknown) => object;
  };
  /** Only if it is asked for. */
  readonly optional?: true;
}

const SECTIONS: readonly Section[] = [
  { type: 'BootstrapConfigDump' },
  {
    type: 'ClustersConfigDump',
    of: {
      served: 'cds',
      field: 'dynamicActiveClusters',
      entry: (_, versionInfo, cluster) => ({ versionInfo, cluster }),
    },
  },
  {
    type: 'EndpointsConfigDump',
    optional: true,
    of: {
      served: 'eds',
      field: 'dynamicEndpointConfigs',
      entry: (_, versionInfo, endpointConfig) => ({ versionInfo, endpointConfig }),
    },
  },
  {
    type: 'ListenersConfigDump',
    of: {
      served: 'lds',
      field: 'dynamicListeners',
      entry: (name, versionInfo, listener) => ({ name, activeState: { versionInfo, listener } }),
    },
  },
  { type: 'ScopedRoutesConfigDump' },
  {
    type: 'RoutesConfigDump',
    of: {
      served: 'rds',
      field: 'dynamicRouteConfigs',
      entry: (_, versionInfo, routeConfig) => ({ versionInfo, routeConfig }),
    },
  },
  {
    type: 'SecretsConfigDump',
    of: {
      served: 'sds',
      field: 'dynamicActiveSecrets',
      entry: (name, versionInfo, secret) => ({ name, versionInfo, secret }),
    },
  },
  { type: 'EcdsConfigDump' },
];

/** JSON of what a proxy is given, in pieces. Private keys are left out. */
export function* configDumpJson(
  protos: Protos,
  given: readonly GivenType[],
  { types: wanted, endpoints }: DumpOptions,
): Generator<string> {
  yield '{"configs": [';
  let separator = '\n';
  if (wanted !== undefined) {
    const urls = wanted.map((name) => (name in servedTypes ? urlOf(name as ServedType) : name));
    for (const found of given.flatMap(({ typeUrl: url, resources }) => (urls.includes(url) ? resources : []))) {
      yield separator;
      yield* resourceJson(protos, found);
      separator = ',\n';
    }
  } else {
    for (const section of SECTIONS) {
      if (section.optional === true && !endpoints) continue;
      yield `${separator}{"@type": "${urlOfSection(section)}"`;
      yield* entriesAsJson(protos, section, given);
      yield '}';
      separator = ',\n';
    }
  }
  yield '\n]}\n';
}

/** Stands for the message, which is the last member of its entry. */
const MESSAGE = 'message';

function* entriesAsJson(protos: Protos, section: Section, given: readonly GivenType[]): Generator<string> {
  if (section.of === undefined) return;
  const { field, entry } = section.of;
  yield `, "${field}": [`;
  let separator = '\n';
  for (const found of resourcesOf(section, given)) {
    const text = JSON.stringify(entry(found.name, found.version, MESSAGE));
    const at = text.lastIndexOf(`"${MESSAGE}"`);
    yield separator + text.slice(0, at);
    yield* resourceJson(protos, found);
    yield text.slice(at + MESSAGE.length + 2);
    separator = ',\n';
  }
  yield ']';
}

/** The same as messages for an xDS response, one per section; yields between resources, so that others have their turn. */
export function* configDumpMessages(protos: Protos, given: readonly GivenType[]): Generator<void, EncodedResource[]> {
  const messages: EncodedResource[] = [];
  for (const section of SECTIONS) {
    if (section.optional === true) continue;
    const parts = [];
    // Messages of one type in a row are one message with all of their entries.
    for (const found of resourcesOf(section, given)) {
      const { field, entry } = section.of!;
      const message = { typeUrl: found.typeUrl, value: shownBytes(protos, found) };
      const only = { [field]: [entry(found.name, found.version, message)] };
      parts.push(leaf(protos.encode(`envoy.admin.v3.${section.type}`, only), []));
      yield;
    }
    messages.push(resource(urlOfSection(section), section.type, node(parts)));
  }
  return messages;
}

function resourcesOf({ of }: Section, given: readonly GivenType[]): readonly EncodedResource[] {
  if (of === undefined) return [];
  const url = urlOf(of.served);
  return given.find((each) => each.typeUrl === url)?.resources ?? [];
}

function urlOf(name: ServedType): string {
  return typeUrl(servedTypes[name]);
}

function urlOfSection({ type }: Section): string {
  return typeUrl(`envoy.admin.v3.${type}`);
}
