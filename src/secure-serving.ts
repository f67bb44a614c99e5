import type { SecureOptions } from './ads/transport/server-options.ts';
import { keepAuthority } from './authority-source.ts';
import type { Clock } from './clock.ts';
import type { Config, SecureConfig } from './config/config.ts';
import type { Engine } from './engine/engine.ts';
import { Refusals } from './secure/refusals.ts';
import { Credentials } from './secure/credentials.ts';
import { reviewToken } from './kube/token-review.ts';
import type { OpenSource, Roots } from './object-source.ts';
import type { LogBudget } from './ops/log-budget.ts';

/** The secure port, and what decides who is who there. */
export interface SecureServing {
  readonly port: SecureOptions;
  readonly roots: Roots;
  /** How many callers were refused, by reason. */
  readonly refusals: () => ReadonlyMap<string, number>;
  /** Presents certificates from now on. */
  start(engine: Engine): void;
}

export function secureServing(
  { mesh }: Config,
  secure: SecureConfig,
  source: OpenSource,
  log: LogBudget,
  clock: Clock,
  signal: AbortSignal,
): SecureServing {
  let engine: Engine | undefined;
  const trustDomain = (): string => engine?.trustDomain() ?? '';
  const credentials = new Credentials({
    trustDomain,
    names: secure.names,
    clusterId: mesh.clusterId,
    review: source.kind === 'kubernetes' ? (token) => reviewToken(source.client, token, signal) : undefined,
    clock,
    log,
    present: (certificate) => engine?.ads.present(certificate),
    signal,
  });
  const refusals = new Refusals(
    (reason, address) => log.warn('Caller on the secure port refused', { reason, address }),
    () => clock.now(),
  );
  const from =
    secure.caDirectory === undefined && source.kind === 'kubernetes'
      ? { kind: 'kubernetes' as const, api: source.client, namespace: mesh.rootNamespace }
      : { kind: 'directory' as const, path: secure.caDirectory ?? '' };
  return {
    roots: credentials,
    refusals: () => refusals.counts,
    port: {
      ...secure.address,
      authenticate: credentials.authenticate,
      services: credentials.services,
      refused: (reason, address) => refusals.add(reason, address),
    },
    start(started) {
      engine = started;
      const use: Parameters<typeof keepAuthority>[0]['use'] = (material) => credentials.use(material);
      void keepAuthority({ from, trustDomain, use, clock, random: Math.random, log, signal });
    },
  };
}
