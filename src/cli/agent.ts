import { request } from 'node:http';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { AgentCommand } from '../agent/agent.ts';
import type { ProxyType } from '../agent/settings/settings.ts';
import { sleep, systemClock } from '../base/clock.ts';
import type { LogFormat, LogLevel } from '../config/settings.ts';
import type { CommandFile } from './world.ts';

/** The agent beside an Envoy. Loads nothing of the control plane: it starts with each Pod. */
export const agentCommand: CommandFile = (world, done) => {
  const command = new Command('agent')
    .description('run Envoy with what it needs beside it: certificates, configuration, readiness')
    .argument('<type>', 'sidecar or router')
    .option('--domain <name>', "DNS domain of the proxy's namespace", '')
    .option('--root <directory>', 'where relative paths begin', '/')
    .option('--mesh-config <file>', 'mesh config, of which defaultConfig is read', 'etc/istio/config/mesh')
    .addOption(
      new Option('--log-level <level>', 'log level').choices(['error', 'warn', 'info', 'debug']).default('info'),
    )
    .addOption(new Option('--log-format <format>', 'log format').choices(['json', 'text']).default('json'))
    .option('--proxy-log-level <level>', 'log level of Envoy', 'warning')
    .option('--proxy-component-log-level <levels>', "log levels of Envoy's components", 'misc:error');
  command.action(async (type: string, options: Record<string, string>) => {
    if (type !== 'sidecar' && type !== 'router') return command.error('error: the type must be sidecar or router');
    const { runAgent } = await import('../agent/agent.ts');
    done(await runAgent(commandOf(type, options), world.signal));
  });
  return command
    .addCommand(
      new Command('drain')
        .description('have the agent of this Pod drain its Envoy')
        .option('--port <port>', 'status port of the agent', portOf, 15_020)
        .action(async ({ port }: { port: number }) => {
          await call(port, 'POST', '/drain', { signal: world.signal });
          done(0);
        }),
    )
    .addCommand(
      new Command('wait')
        .description('wait until the proxy of this Pod is ready')
        .option('--port <port>', 'readiness port of Envoy, or, without Envoy, status port of the agent', portOf, 15_021)
        .option('--timeout <seconds>', 'how long', secondsOf, 60)
        .action(async ({ port, timeout }: { port: number; timeout: number }) => {
          done(await waitFor(port, timeout * 1000, world.err, { signal: world.signal }));
        }),
    );
};

function commandOf(type: ProxyType, options: Readonly<Record<string, string>>): AgentCommand {
  return {
    type,
    domain: options['domain'] ?? '',
    root: options['root'] ?? '/',
    meshConfigFile: options['meshConfig'] ?? '',
    // Commander has checked the choices.
    log: { level: options['logLevel'] as LogLevel, format: options['logFormat'] as LogFormat },
    proxyLogLevel: options['proxyLogLevel'] ?? '',
    proxyComponentLogLevel: options['proxyComponentLogLevel'] ?? '',
  };
}

function portOf(text: string): number {
  const port = /^\d+$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw new InvalidArgumentError('Use a port number, from 1 to 65535.');
  return port;
}

function secondsOf(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError('Use a number of seconds, such as 60.');
  return Number(text);
}

/** Milliseconds between looks. */
const EVERY = 500;

interface Until {
  readonly signal: AbortSignal;
}

async function waitFor(port: number, ms: number, err: (text: string) => void, until: Until): Promise<number> {
  const ends = performance.now() + ms;
  let problem = '';
  while (!until.signal.aborted) {
    try {
      await call(port, 'GET', '/healthz/ready', until);
      return 0;
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
    if (performance.now() > ends) break;
    await sleep(systemClock, EVERY, until);
  }
  err(`error: the proxy is not ready: ${problem}\n`);
  return 1;
}

/** Rejects unless the answer is 200. */
function call(port: number, method: string, path: string, { signal }: Until): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: 'localhost', port, method, path, agent: false, timeout: 5_000, signal },
      (response) => {
        response.setEncoding('utf8');
        let body = '';
        response.on('data', (chunk: string) => (body = (body + chunk).slice(0, 1_000)));
        response.on('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(body.trim() || `status ${response.statusCode}`)),
        );
      },
    );
    sent.on('timeout', () => sent.destroy(new Error('no answer')));
    sent.on('error', reject);
    sent.end();
  });
}
