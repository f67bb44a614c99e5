/**
 * The life of an agent from start to end; `services.ts` is what it starts. Its folders: `settings/` (what it was told),
 * `bootstrap/`, `certificate/` (keys, CSRs, mounted certificates, providers of certificates (decision 0108), secrets for
 * Envoy), `xds/` (the relay between Envoy and the control plane, and what it keeps for a start without one), `envoy/` (its
 * process, readiness, draining), `status/` (port 15020: probes and metrics of the application), `dns/` (names of the mesh
 * for the application, decision 0075), `grpc/` (the bootstrap of gRPC's own clients).
 */
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { type Clock, aborted, systemClock } from '../base/clock.ts';
import { containErrors } from '../base/contained-errors.ts';
import type { LogFormat, LogLevel } from '../config/settings.ts';
import { bootstrapOf, isV6Only } from './bootstrap/bootstrap.ts';
import { readText } from './certificate/files.ts';
import { AgentConfigError } from './settings/config-fields.ts';
import { adminAt } from './envoy/admin.ts';
import { type DrainOptions, drain, startDrain } from './envoy/drain.ts';
import { endFormerEnvoy, rememberEnvoy } from './envoy/former-envoy.ts';
import { type EnvoyProcess, startEnvoy } from './envoy/process.ts';
import { grpcBootstrapOf } from './grpc/bootstrap.ts';
import { type AgentLog, createAgentLog } from './log.ts';
import { isSocket, needDirectory, ownAddresses, removeFile, reportEnd, writeNeeded } from './machine.ts';
import { type Services, startServices } from './services.ts';
import { type AgentOptions, type AgentSettings, readSettings } from './settings/settings.ts';
import { type Life, statusSources } from './status/sources.ts';
import { serveStatus } from './status/server.ts';

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
  const settings = readSettings(command, { env: process.env, readFile: readText, isSocket, addresses: ownAddresses });
  if (settings.unused.length > 0) log.warn('These settings have no effect', { fields: settings.unused });
  const { paths, proxy } = settings;
  needDirectory(paths.state);
  const admin = adminAt(proxy.adminPort, isV6Only(settings) ? '::1' : '127.0.0.1');
  const envoy = { settings, admin, clock, log };
  const [end, quit, failed] = [new AbortController(), new AbortController(), new AbortController()];
  const life: Life = { phase: 'waiting', isDrained: false, unexpectedErrors: 0 };
  const shutdown = AbortSignal.any([signal, failed.signal]);
  shutdown.addEventListener('abort', () => (life.phase = 'draining'), { once: true });
  try {
    // Without an Envoy, containers of the application write into the directory, too: nothing that is there is believed.
    if (settings.hasEnvoy) await endFormerEnvoy(pidFileOf(settings), { clock, log, signal });
    const services = await startServices(settings, { clock, log, signal: end.signal });
    const sources = statusSources(settings, services, admin, life);
    const status = await serveStatus(proxy.statusPort, {
      ...sources,
      drain: async () => {
        [life.phase, life.isDrained] = ['draining', true];
        if (settings.hasEnvoy) await startDrain(envoy, false);
      },
      quit: () => quit.abort(),
    });
    // Traffic does not depend on this process, and must not end with it.
    containErrors(process, {
      clock,
      log: log.error,
      count: () => void life.unexpectedErrors++,
      giveUp: (reason) => {
        log.error('Draining, then ending', { reason });
        failed.abort();
      },
      signal: end.signal,
    });
    end.signal.addEventListener('abort', () => {
      status.close();
      status.closeAllConnections();
    });
    const ending = { life, signal: shutdown, quit: quit.signal };
    if (settings.grpcBootstrapFile !== undefined)
      writeNeeded(settings.grpcBootstrapFile, JSON.stringify(grpcBootstrapOf(settings), undefined, 2));
    const run = settings.hasEnvoy ? runEnvoy(command, envoy, services, ending) : serveLibraries(services, ending);
    return (await run) || Number(failed.signal.aborted);
  } finally {
    end.abort();
  }
}

interface Ending {
  readonly life: Life;
  /** Ends Envoy once it is drained. */
  readonly signal: AbortSignal;
  /** Ends Envoy now. */
  readonly quit: AbortSignal;
}

/** gRPC's libraries in other containers drain by themselves. */
async function serveLibraries({ certificate }: Services, { life, signal, quit }: Ending): Promise<number> {
  const end = AbortSignal.any([signal, quit]);
  await Promise.race([certificate.first(), aborted(end)]);
  if (life.phase === 'waiting') life.phase = 'running';
  await aborted(end);
  return 0;
}

/** From when there is a certificate until Envoy has ended. Resolves with the exit code. */
async function runEnvoy(
  command: AgentCommand,
  options: DrainOptions & { readonly settings: AgentSettings },
  { certificate }: Services,
  { life, signal, quit }: Ending,
): Promise<number> {
  const { settings, log } = options;
  await Promise.race([certificate.first(), aborted(AbortSignal.any([signal, quit]))]);
  // Nothing is running yet.
  if (signal.aborted || quit.aborted) return 0;
  const file = join(settings.paths.state, 'envoy-rev.json');
  const bootstrap = bootstrapOf(await withStatsdAddress(settings, log), command.log.format);
  writeNeeded(file, JSON.stringify(bootstrap, undefined, 2));
  const envoy = startEnvoy(settings, {
    bootstrapFile: settings.proxy.customConfigFile || file,
    level: command.proxyLogLevel,
    componentLevels: command.proxyComponentLogLevel,
    override: overrideOf(settings),
    log: process.stderr,
  });
  if (life.phase === 'waiting') life.phase = 'running';
  log.info('Envoy started', { pid: envoy.pid, node: settings.pod.name });
  if (envoy.pid !== undefined) rememberEnvoy(pidFileOf(settings), envoy.pid, log);
  const gone = new AbortController();
  void envoy.exited.then(() => {
    removeFile(pidFileOf(settings));
    gone.abort();
  });
  await aborted(AbortSignal.any([signal, quit, gone.signal]));
  if (gone.signal.aborted) return exitCodeOf(envoy, log);
  if (!life.isDrained && !quit.aborted) await drain(options, { signal: AbortSignal.any([gone.signal, quit]) });
  envoy.kill();
  await envoy.exited;
  removeFile(file);
  return 0;
}

const pidFileOf = ({ paths }: AgentSettings): string => join(paths.state, 'envoy.pid');

async function exitCodeOf(envoy: EnvoyProcess, log: AgentLog): Promise<number> {
  const { code, reason } = await envoy.exited;
  if (code === 0) log.info(reason);
  else {
    log.error(reason);
    reportEnd(reason);
  }
  return code;
}

/** Envoy takes only an IP address for statsd. */
async function withStatsdAddress(settings: AgentSettings, log: AgentLog): Promise<AgentSettings> {
  const { proxy } = settings;
  const { statsd } = proxy.collectors;
  if (statsd === undefined || isIP(statsd.host) !== 0) return settings;
  const address = await lookup(statsd.host).catch((error: unknown) => {
    log.warn('No figures for statsd: its address is not known', { host: statsd.host, reason: String(error) });
  });
  const found = address && { host: address.address, port: statsd.port };
  return { ...settings, proxy: { ...proxy, collectors: { ...proxy.collectors, statsd: found || undefined } } };
}

/** YAML, with the address of the machine where it is asked for. */
function overrideOf({ env, root }: AgentSettings): string {
  const file = env['ISTIO_BOOTSTRAP_OVERRIDE'] ?? '';
  if (file === '') return '';
  try {
    return readFileSync(resolve(root, file), 'utf8').replaceAll('$(HOST_IP)', env['HOST_IP'] ?? '');
  } catch (error) {
    throw new AgentConfigError(`ISTIO_BOOTSTRAP_OVERRIDE: ${error instanceof Error ? error.message : String(error)}`);
  }
}
