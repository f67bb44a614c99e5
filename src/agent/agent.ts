import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../clock.ts';
import type { LogFormat, LogLevel } from '../config/settings.ts';
import { spiffeId } from '../identity/spiffe.ts';
import { bootstrapOf, isV6Only } from './bootstrap/bootstrap.ts';
import { requestCertificate } from './certificate/certificate-client.ts';
import { readCertificate, readText, writeCertificate } from './certificate/files.ts';
import { listenOnSocket, secretService, streamOfBytes } from './certificate/secret-server.ts';
import { WorkloadCertificate } from './certificate/workload-certificate.ts';
import { workloadSecrets } from './certificate/workload-secrets.ts';
import { startDnsProxy } from './dns/dns-proxy.ts';
import { hostsOfMesh } from './dns/hosts.ts';
import { adminAt } from './envoy/admin.ts';
import { drain, startDrain } from './envoy/drain.ts';
import { type EnvoyExit, startEnvoy } from './envoy/process.ts';
import { Readiness } from './envoy/readiness.ts';
import { type AgentLog, createAgentLog } from './log.ts';
import { hostOf } from './node.ts';
import { AgentConfigError } from './proxy-config.ts';
import { type AgentOptions, type AgentSettings, readSettings } from './settings.ts';
import { readAppProbes } from './status/app-probes.ts';
import { readScrapeTarget } from './status/metrics.ts';
import { serveStatus } from './status/server.ts';
import { type ControlPlaneOptions, NotDialed, dial } from './xds/control-plane.ts';
import { LastConfig } from './xds/last-config.ts';
import { ADS, Relay } from './xds/relay.ts';
import { trustBundle } from './xds/trust-bundle.ts';

export interface AgentCommand extends AgentOptions {
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
  readonly proxyLogLevel: string;
  readonly proxyComponentLogLevel: string;
}

/**
 * Runs Envoy, and what it needs beside it, until it ends or the signal fires. Resolves with the exit code: Envoy's. Throws
 * an `AgentConfigError` for a mistake in the configuration.
 */
export async function runAgent(
  command: AgentCommand,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<number> {
  const log = createAgentLog(command.log, (line) => void process.stderr.write(line));
  const settings = readSettings(command, {
    env: process.env,
    readFile: (path) => readText(path),
    addresses: ownAddresses,
  });
  if (settings.unused.length > 0) log.warn('These settings have no effect', { fields: settings.unused });
  const { paths, proxy, pod } = settings;
  for (const directory of [paths.state, dirname(paths.secretSocket)]) needDirectory(directory);
  const end = new AbortController();
  const certificate = workloadCertificate(settings, clock, log, end.signal);
  const dns = settings.dnsCapture
    ? await startDnsProxy({
        settings,
        resolvConf: readText('/etc/resolv.conf') ?? '',
        random: Math.random,
        signal: end.signal,
      })
    : undefined;
  const last = new LastConfig({ file: join(paths.state, 'last-config.bin'), clock, log, signal: end.signal });
  const relay = new Relay({
    dial: () => dial(controlPlane(settings, proxy.discoveryAddress)),
    own: [trustBundle((roots) => certificate.trust(roots)), ...(dns === undefined ? [] : [hostsOfMesh(dns.names)])],
    last,
    clock,
    random: Math.random,
    log,
    signal: end.signal,
  });
  const [secrets, ads] = [new Server(), new Server({ 'grpc.max_receive_message_length': -1 })];
  const crl = join(dirname(paths.roots), 'crl/ca-crl.pem');
  secrets.addService(...secretService(workloadSecrets(certificate, crl, end.signal), log));
  ads.addService({ Delta: { ...streamOfBytes, path: ADS } }, { Delta: relay.serve.bind(relay) });
  const host = isV6Only(settings) ? '::1' : '127.0.0.1';
  const admin = adminAt(proxy.adminPort, host);
  const readiness = new Readiness(admin);
  const ending = new AbortController();
  let [drained, started] = [false, false];
  const failures = { envoy: 0, app: 0 };
  const [address = host] = pod.addresses;
  const from = address.includes(':') ? '::6' : '127.0.0.6';
  const intercepted = settings.type === 'sidecar' && settings.env['ISTIO_META_INTERCEPTION_MODE'] !== 'NONE';
  const app = { host: address, from: intercepted ? from : undefined };
  const target =
    settings.type === 'sidecar' ? readScrapeTarget(settings.env['ISTIO_PROMETHEUS_ANNOTATIONS'] ?? '') : undefined;
  const status = await serveStatus(proxy.statusPort, {
    notReady: async () => {
      if (signal.aborted || drained) return 'draining';
      if (!started) return certificate.problem ?? 'Envoy is not started yet';
      return (await readiness.problem()) ?? (dns?.names.isLoaded === false ? 'there are no names yet' : undefined);
    },
    probes: readAppProbes(settings.env['ISTIO_KUBE_APP_PROBERS'] ?? ''),
    app,
    metrics: {
      own: () => ownMetrics(relay, certificate, failures),
      envoy: { host, port: Number(settings.env['ENVOY_PROMETHEUS_PORT'] ?? 15_090) },
      app: target && { ...target, ...app },
      failed: (source) => void failures[source]++,
    },
    status: () => ({
      connected: relay.connected,
      ...(relay.servesSaved && { servesConfigurationOf: relay.servesSaved }),
      ...(last.isTooLarge && { savedConfiguration: 'none: it is too large' }),
      certificate: certificate.problem ?? 'valid',
      controlPlane: proxy.discoveryAddress,
      ...(dns && { dns: { hosts: dns.names.size, ...dns.counts() } }),
    }),
    drain: async () => {
      drained = true;
      await startDrain({ settings, admin, clock, log }, false);
    },
    quit: () => ending.abort(),
  });
  try {
    await listenOnSocket(secrets, paths.secretSocket);
    await listenOnSocket(ads, paths.xdsSocket);
    void certificate.keep();
    await Promise.race([certificate.first(), aborted(signal), aborted(ending.signal)]);
    // Nothing is running yet.
    if (signal.aborted || ending.signal.aborted) return 0;
    const file = join(paths.state, 'envoy-rev.json');
    writeFileSync(file, JSON.stringify(bootstrapOf(settings, command.log.format), undefined, 2));
    const envoy = startEnvoy(settings, {
      bootstrapFile: proxy.customConfigFile || file,
      level: command.proxyLogLevel,
      componentLevels: command.proxyComponentLogLevel,
      override: overrideOf(settings),
      log: process.stderr,
    });
    started = true;
    log.info('Envoy started', { pid: envoy.pid, node: settings.pod.name });
    const gone = new AbortController();
    void envoy.exited.then(() => gone.abort());
    await aborted(AbortSignal.any([signal, ending.signal, gone.signal]));
    if (gone.signal.aborted) return endedWith(await envoy.exited, log);
    if (!drained && !ending.signal.aborted)
      await drain({ settings, admin, clock, log }, { signal: AbortSignal.any([gone.signal, ending.signal]) });
    envoy.kill();
    await envoy.exited;
    rmSync(file, { force: true });
    return 0;
  } finally {
    end.abort();
    secrets.forceShutdown();
    ads.forceShutdown();
    status.close();
    status.closeAllConnections();
  }
}

function endedWith({ code, reason }: EnvoyExit, log: AgentLog): number {
  if (code === 0) log.info(reason);
  else {
    log.error(reason);
    reportEnd(reason);
  }
  return code;
}

/** For `kubectl describe pod`. */
function reportEnd(reason: string): void {
  try {
    writeFileSync('/dev/termination-log', reason, { flag: 'r+' });
  } catch {
    // Only in a Pod there is one.
  }
}

function needDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
    accessSync(path, constants.W_OK);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new AgentConfigError(`cannot write to ${path} (${reason}); mount an emptyDir there`);
  }
}

function workloadCertificate(
  settings: AgentSettings,
  clock: Clock,
  log: AgentLog,
  signal: AbortSignal,
): WorkloadCertificate {
  const { pod, trustDomain, paths, env } = settings;
  const saved = join(paths.state, 'certificate');
  const certificate = new WorkloadCertificate({
    identity: spiffeId(trustDomain, pod.namespace, pod.serviceAccount),
    sign: (csr) =>
      requestCertificate(controlPlane(settings, settings.certificateAddress), csr, settings.certificateLife, {
        signal,
        signer: env['ISTIO_META_CERT_SIGNER'] ?? '',
      }),
    save(signed) {
      for (const directory of [saved, paths.outputCertificates])
        if (directory !== undefined)
          try {
            writeCertificate(directory, signed);
          } catch (error) {
            log.warn('The certificate is not saved for a restart', { directory, reason: String(error) });
          }
    },
    renewAfter: settings.renewAfter,
    clock,
    random: Math.random,
    log,
    signal,
  });
  const former = readCertificate(saved);
  if (former !== undefined) certificate.resume(former);
  return certificate;
}

function controlPlane(settings: AgentSettings, address: string): ControlPlaneOptions {
  const { paths, proxy, env, clusterId } = settings;
  const name = env['ISTIOD_SAN'] ?? '';
  const headers: Record<string, string> = { clusterid: clusterId };
  for (const [key, value] of Object.entries(env))
    if (key.startsWith('XDS_HEADER_')) headers[key.slice('XDS_HEADER_'.length)] = value;
  const proven = paths.provenCertificates;
  return {
    address,
    ...(name !== ''
      ? { name }
      : ['localhost', '127.0.0.1', '::1'].includes(hostOf(address)) && { name: 'istiod.istio-system.svc' }),
    ...(proxy.controlPlaneTls &&
      !address.endsWith(':15010') && {
        tls: {
          roots: () =>
            rootsOf(proven === undefined ? [paths.roots] : [join(proven, 'root-cert.pem'), paths.roots], env),
          certificate: () => (proven === undefined ? undefined : readCertificate(proven)),
        },
      }),
    token: () => readText(paths.token)?.trim(),
    headers,
  };
}

function rootsOf(files: readonly string[], env: Readonly<Record<string, string>>): string | undefined {
  if (env['XDS_ROOT_CA'] === 'SYSTEM') return undefined;
  for (const file of files) {
    const text = readText(file);
    if (text !== undefined) return text;
  }
  throw new NotDialed(`there are no roots at ${files.at(-1)}; is the ConfigMap istio-ca-root-cert mounted?`);
}

/** YAML, with the address of the machine where it is asked for. Throws if the file is not there. */
function overrideOf({ env, root }: AgentSettings): string {
  const file = env['ISTIO_BOOTSTRAP_OVERRIDE'] ?? '';
  return file === '' ? '' : readFileSync(resolve(root, file), 'utf8').replaceAll('$(HOST_IP)', env['HOST_IP'] ?? '');
}

function ownMetrics(
  relay: Relay,
  certificate: WorkloadCertificate,
  failures: Readonly<Record<'envoy' | 'app', number>>,
): string {
  const metric = (name: string, type: string, help: string, value: number, labels = ''): string =>
    `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}${labels} ${value}\n`;
  return [
    metric('istio_agent_connected', 'gauge', 'Whether the control plane answers.', Number(relay.connected)),
    metric(
      'istio_agent_has_certificate',
      'gauge',
      'Whether there is a good certificate.',
      Number(certificate.problem === undefined),
    ),
    metric(
      'istio_agent_scrape_failures_total',
      'counter',
      'Scrapes of Envoy that failed.',
      failures.envoy,
      '{type="envoy"}',
    ),
    `istio_agent_scrape_failures_total{type="application"} ${failures.app}\n`,
  ].join('');
}

function ownAddresses(): readonly { readonly interface: string; readonly address: string }[] {
  return Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
      .map(({ address }) => ({ interface: name, address })),
  );
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
