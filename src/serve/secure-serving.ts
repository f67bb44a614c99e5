import { X509Certificate } from 'node:crypto';
import type { PortCertificate } from '../ads/transport/secure-port.ts';
import type { SecureOptions } from '../ads/transport/server-options.ts';
import { AuthorityKeeper, type AuthorityKeeperOptions, keepAuthority } from './authority-keeper.ts';
import type { Clock } from '../base/clock.ts';
import type { Config, SecureConfig } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { PROXY_CONFIG } from '../envoy/tls/trust-bundle.ts';
import { type Progress, bundleId } from '../identity/rotation.ts';
import { reportOf } from '../identity/rotation-report.ts';
import { mergeRoots } from '../identity/roots.ts';
import { ONE } from '../mesh/inputs.ts';
import { Refusals } from '../secure/refusals.ts';
import { Credentials, type CredentialsOptions } from '../secure/credentials.ts';
import type { TokenIssuers } from '../secure/token-issuer.ts';
import { publishedRoots } from '../kube/writing/published-roots.ts';
import { reviewToken } from '../kube/client/token-review.ts';
import type { OpenSource, Roots } from './object-source.ts';
import type { LogBudget } from '../ops/log-budget.ts';
import { inMemory, inSecret } from './rotation-store.ts';

/** The secure port, and what decides who is who there. */
export interface SecureServing {
  readonly port: SecureOptions;
  readonly roots: Roots;
  /** What keeps callers from connecting; empty from the first certificate on, whatever becomes of the authority. */
  readonly waitingFor: () => readonly string[];
  /** How many callers were refused, by reason. */
  readonly refusals: () => ReadonlyMap<string, number>;
  /** When the certificates expire that the authority signs with; undefined until there is one. */
  readonly expiry: () => { readonly root: Date; readonly chain: Date } | undefined;
  /** Calls back with what the secure port presents from now on: other ports of this control plane may, too. */
  onCertificate(presented: (certificate: PortCertificate) => void): void;
  /** Presents certificates from now on. */
  start(engine: Engine): void;
  /** Accepts tokens of these clusters, too. */
  accept(others: TokenIssuers): void;
}

/** @param identity name of this replica. */
export function secureServing(
  { mesh }: Config,
  secure: SecureConfig,
  source: OpenSource,
  { log, audit }: { readonly log: LogBudget; readonly audit: LogBudget },
  clock: Clock,
  identity: string,
  signal: AbortSignal,
): SecureServing {
  let engine: Engine | undefined;
  let authority: AuthorityKeeper | undefined;
  let others: TokenIssuers | undefined;
  const trustDomain = (): string => engine?.trustDomain() ?? '';
  const credentials = new Credentials({
    clusterId: mesh.clusterId,
    aliases: mesh.clusterAliases,
    trustDomainOf: (cluster) => engine?.trustDomainOf(cluster),
    own: ownIssuer(source, mesh.clusterId, signal),
    others: { issuerOf: (cluster) => others?.issuerOf(cluster) },
    names: secure.names,
    lifetime: secure.certificateLifetime,
    clock,
    log,
    audit: (tenant, about) => audit.infoBy(tenant, 'Certificate signed', about),
    allow: (expires) => authority!.allow(expires),
    present(certificate) {
      engine?.ads.present(certificate);
      presented(certificate);
      isPresented = true;
    },
    signal,
  });
  const refusals = new Refusals(
    (reason, address) => log.warn('Caller on the secure port refused', { reason, address }),
    () => clock.now(),
  );
  const places = authorityPlaces(source, secure, mesh.rootNamespace, signal);
  let isPresented = false;
  let expiry: ReturnType<SecureServing['expiry']>;
  let report = '';
  let changed = (): void => undefined;
  let presented: (certificate: PortCertificate) => void = () => undefined;
  // Without a cluster, or without permission to write to it, there are no ConfigMaps to wait for.
  let missing: (roots: string) => number | undefined = () => 0;
  return {
    roots: {
      get pem() {
        return credentials.pem;
      },
      get rotation() {
        return report;
      },
      onChange: (listener) => (changed = listener),
      countMissingBy: (count) => (missing = count),
    },
    waitingFor: () => (isPresented ? [] : ['signing certificates']),
    refusals: () => refusals.counts,
    expiry: () => expiry,
    port: {
      ...secure.address,
      authenticate: credentials.authenticate,
      services: credentials.services,
      refused: (reason, address) => refusals.add(reason, address),
    },
    onCertificate: (listener) => (presented = listener),
    accept: (issuers) => (others = issuers),
    start(started) {
      engine = started;
      const { committer, mesh: running } = started;
      authority = new AuthorityKeeper({
        ...places,
        identity,
        trustDomain,
        use: async (material) => {
          await credentials.use(material);
          expiry = { root: new X509Certificate(material.root).validToDate, chain: material.expires };
          committer.write(running.inputs.trustBundle.write(ONE, { roots: material.roots }));
        },
        changed(rotation) {
          report = JSON.stringify(reportOf(rotation, clock.date()));
          changed();
        },
        progress: () => progressOf(started, credentials.pem, missing),
        clock,
        random: Math.random,
        log,
        signal,
      });
      void keepAuthority(authority);
    },
  };
}

/** Reviews tokens of the own cluster; undefined without an API server. */
function ownIssuer(source: OpenSource, cluster: string, signal: AbortSignal): CredentialsOptions['own'] {
  if (source.kind !== 'kubernetes') return undefined;
  return { cluster, review: (token) => reviewToken(source.client, token, signal) };
}

/** Where the authority comes from, where its rotation is stored, and what namespaces publish of it. */
function authorityPlaces(
  source: OpenSource,
  { caDirectory }: SecureConfig,
  rootNamespace: string,
  signal: AbortSignal,
): Pick<AuthorityKeeperOptions, 'from' | 'store' | 'published'> {
  const directory = { kind: 'directory', path: caDirectory ?? '' } as const;
  if (source.kind !== 'kubernetes')
    return { from: directory, store: inMemory(), published: () => Promise.resolve({ others: [] }) };
  const { client: api } = source;
  return {
    from: caDirectory === undefined ? { kind: 'kubernetes', api, namespace: rootNamespace } : directory,
    store: inSecret(api, rootNamespace, signal),
    published: () => publishedRoots(api, rootNamespace, signal),
  };
}

/** How far proxies and namespaces are with the roots. */
function progressOf(
  { ads, mesh }: Engine,
  pem: string,
  missing: (roots: string) => number | undefined,
): Omit<Progress, 'at'> {
  const { roots } = mesh.inputs.trustBundle.get(ONE) ?? { roots: [] };
  const behind = ads
    .streams()
    .filter(
      ({ types }) => !types.some((type) => type.typeUrl === PROXY_CONFIG && type.synced && !type.rejected.length),
    );
  const namespaces = missing(pem);
  return {
    // What is not committed was not sent.
    bundle: bundleId(mergeRoots(roots)),
    proxies: behind.length,
    ...(namespaces !== undefined && { namespaces }),
  };
}
