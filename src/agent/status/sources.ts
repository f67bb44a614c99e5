import { isV6Only } from '../bootstrap/bootstrap.ts';
import { X509Certificate } from 'node:crypto';
import type { Certificate } from '../certificate/verdict.ts';
import type { Admin } from '../envoy/admin.ts';
import { Readiness } from '../envoy/readiness.ts';
import type { Services } from '../services.ts';
import type { AgentSettings } from '../settings/settings.ts';
import { appAddress } from './app-address.ts';
import { readAppProbes } from './app-probes.ts';
import { ownMetrics } from './own-metrics.ts';
import { readScrapeTargets } from './scrape-targets.ts';
import type { StatusSources } from './server.ts';

/** Where Envoy is in its life. */
export interface Life {
  phase: 'waiting' | 'running' | 'draining';
  /** Whoever ends the Pod had it drained, and has waited for that. */
  isDrained: boolean;
  /** Errors that nothing handled. */
  unexpectedErrors: number;
}

/** What the status port says, and whom it asks. Throws an `AgentConfigError` for what the injector should have written. */
export function statusSources(
  settings: AgentSettings,
  { certificate, relay, last, dns }: Services,
  admin: Admin,
  life: Readonly<Life>,
): Omit<StatusSources, 'drain' | 'quit'> {
  const { env, ports, proxy, type } = settings;
  const provider = settings.paths.secretProvider;
  const readiness = new Readiness(admin);
  const failedScrapes = { envoy: 0, app: 0 };
  const app = appAddress(settings);
  const loopback = isV6Only(settings) ? '::1' : '127.0.0.1';
  return {
    notReady: async () => {
      if (life.phase === 'draining') return 'draining';
      if (life.phase === 'waiting') return certificate.problem ?? 'Envoy is not started yet';
      if (!settings.hasEnvoy) return undefined;
      return (await readiness.problem()) ?? (dns?.names.isLoaded === false ? 'there are no names yet' : undefined);
    },
    probes: readAppProbes(env['ISTIO_KUBE_APP_PROBERS'] ?? ''),
    app,
    metrics: {
      own: () =>
        ownMetrics({
          connected: relay.connected,
          hasCertificate: provider === undefined ? certificate.problem === undefined : undefined,
          certificateSeconds: secondsOf(certificate.current),
          unexpectedErrors: life.unexpectedErrors,
          failedScrapes,
        }),
      envoy: settings.hasEnvoy ? { host: loopback, port: ports.metrics } : undefined,
      mergesEnvoy: env['PILOT_AGENT_MERGE_ENVOY_STATS'] !== 'false',
      app,
      targets:
        type === 'sidecar'
          ? readScrapeTargets(env['ISTIO_PROMETHEUS_ANNOTATIONS'] ?? '', [
              proxy.statusPort,
              proxy.adminPort,
              ...Object.values(ports),
            ])
          : [],
      failed: (source) => void failedScrapes[source]++,
    },
    status: () => ({
      connected: relay.connected,
      ...(relay.servesSaved && { servesConfigurationOf: relay.servesSaved }),
      ...(last.isTooLarge && { savedConfiguration: 'none: it is too large' }),
      certificate: provider === undefined ? (certificate.problem ?? 'valid') : `with the provider at ${provider}`,
      controlPlane: proxy.discoveryAddress,
      ...(dns && { dns: { hosts: dns.names.size, ...dns.counts() } }),
    }),
  };
}

function secondsOf(certificate: Certificate | undefined): number | undefined {
  if (certificate === undefined) return undefined;
  return Math.round((new X509Certificate(certificate.chain).validToDate.getTime() - Date.now()) / 1000);
}
