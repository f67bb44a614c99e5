import { dirname } from 'node:path';
import { bytesOf } from '../../src/ads/wire/bytes-of.ts';
import type { EncodedResource } from '../../src/ads/store/resource.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { type Json, type Protos, typeOfUrl } from '../../src/envoy/encode/proto.ts';
import { leaf, resource } from '../../src/envoy/encode/resource.ts';

/** What an Envoy on this machine has in place of what is around a proxy in a cluster. */
export interface Surroundings {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
  readonly dnsPort: number;
  /** Names of the secrets that are served. */
  readonly secrets: ReadonlySet<string>;
}

/** How the names of other secrets end: the test makes them as they are used. */
export const asRoots = '~roots';
const asPair = '~pair';

/**
 * A resource as a machine without the agent, its files and the cluster's DNS can load it, beside anything that listens
 * there: nothing is bound, files are those of a test, secrets come over ADS. All else is as it is served.
 */
export function loadable(protos: Protos, item: EncodedResource, surroundings: Surroundings): EncodedResource {
  const type = typeOfUrl(item.typeUrl);
  const json = protos.toJson(type, bytesOf(item.body));
  const changed = replace(json, '', surroundings);
  const message = type === types.listener ? { ...(changed as object), bindToPort: false } : changed;
  // By the names of its own message, which the resource was made from.
  const bytes = protos.encode(type, protos.fromJson(type, message as Json));
  return resource(item.typeUrl, item.name, leaf(bytes, []));
}

const ads = { ads: {}, resourceApiVersion: 'V3' };

type Members = Readonly<Record<string, Json>>;

function replace(value: Json, name: string, surroundings: Surroundings): Json {
  if (Array.isArray(value)) return value.map((item: Json) => replace(item, name, surroundings));
  if (typeof value !== 'object' || value === null) return value;
  const members = value as Members;
  if (members['filename'] !== undefined) {
    const { certificate, key, authority } = surroundings;
    return { filename: name === 'trustedCa' ? authority : name === 'privateKey' ? key : certificate };
  }
  if (name === 'watchedDirectory') return { path: dirname(surroundings.key) };
  // What a test reads from Envoy is neither a terminal nor a file.
  if (members['path'] === '/dev/stdout') return { ...members, path: '/dev/null' };
  if (name === 'sdsConfig') return ads;
  const { name: secret, sdsConfig } = members;
  if (sdsConfig !== undefined && typeof secret === 'string' && !surroundings.secrets.has(secret)) {
    const use = name === 'tlsCertificateSdsSecretConfigs' ? asPair : asRoots;
    return { name: secret + use, sdsConfig: ads };
  }
  const replaced = Object.fromEntries(
    Object.entries(members).map(([key, member]) => [key, replace(member, key, surroundings)]),
  );
  if (String(members['@type']).endsWith('.CaresDnsResolverConfig')) {
    replaced['resolvers'] = [
      { socketAddress: { address: '127.0.0.1', portValue: surroundings.dnsPort, protocol: 'UDP' } },
    ];
  }
  return replaced;
}
