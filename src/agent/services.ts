import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import type { Clock } from '../base/clock.ts';
import type { CertificateSource } from './certificate/certificate-source.ts';
import { ownCertificate } from './certificate/own-certificate.ts';
import { providedSecrets } from './certificate/provided-secrets.ts';
import { secretService } from './certificate/secret-server.ts';
import { crlFile, workloadSecrets } from './certificate/workload-secrets.ts';
import { readText } from './certificate/files.ts';
import { controlPlane } from './control-plane.ts';
import { type DnsProxy, startDnsProxy } from './dns/dns-proxy.ts';
import { hostsOfMesh } from './dns/hosts.ts';
import type { AgentLog } from './log.ts';
import type { AgentSettings } from './settings/settings.ts';
import { dial } from './xds/dial.ts';
import { LastConfig } from './xds/last-config.ts';
import { ADS, Relay } from './xds/relay.ts';
import { PassThrough, STATE_OF_THE_WORLD } from './xds/pass-through.ts';
import { listenOnSocket, streamOfBytes } from './xds/socket.ts';
import { trustBundle } from './xds/trust-bundle.ts';

/** What Envoy and the application have of an agent. */
export interface Services {
  readonly certificate: CertificateSource;
  readonly relay: Relay;
  readonly last: LastConfig;
  readonly dns: DnsProxy | undefined;
}

export interface Surroundings {
  readonly clock: Clock;
  readonly log: AgentLog;
  /** Ends them. */
  readonly signal: AbortSignal;
}

/** Rejects if something that they need is not there: a port, a directory. */
export async function startServices(settings: AgentSettings, { clock, log, signal }: Surroundings): Promise<Services> {
  const { paths, proxy } = settings;
  const certificate = ownCertificate(settings, clock, log, signal);
  const resolvConf = readText('/etc/resolv.conf') ?? '';
  const dns = settings.dnsCapture
    ? await startDnsProxy({ settings, resolvConf, random: Math.random, signal })
    : undefined;
  const last = new LastConfig({ file: join(paths.state, 'last-config.bin'), clock, log, signal });
  const connect = () => dial(controlPlane(settings, proxy.discoveryAddress));
  const relay = new Relay({
    dial: connect,
    own: [trustBundle((roots) => certificate.trust(roots)), ...(dns === undefined ? [] : [hostsOfMesh(dns.names)])],
    last,
    clock,
    random: Math.random,
    log,
    signal,
  });
  const [secrets, ads] = [new Server(), new Server({ 'grpc.max_receive_message_length': -1 })];
  const shutdown = (): void => [secrets, ads].forEach((server) => server.forceShutdown());
  signal.addEventListener('abort', shutdown, { once: true });
  const own = secretService(workloadSecrets(certificate, crlFile(paths), log, signal), log);
  const { secretProvider } = paths;
  secrets.addService(...(secretProvider === undefined ? own : providedSecrets(own, secretProvider, log)));
  const libraries = new PassThrough({ method: STATE_OF_THE_WORLD, to: 'the control plane', dial: connect, log });
  ads.addService(
    { Delta: { ...streamOfBytes, path: ADS }, Stream: { ...streamOfBytes, path: STATE_OF_THE_WORLD } },
    { Delta: relay.serve.bind(relay), Stream: libraries.serve.bind(libraries) },
  );
  await listenOnSocket(secrets, paths.secretSocket);
  // gRPC's libraries run in other containers, as other users.
  await listenOnSocket(ads, paths.xdsSocket, settings.grpcBootstrapFile !== undefined);
  void certificate.keep();
  return { certificate, relay, last, dns };
}
