import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { iptablesRules } from './iptables.ts';
import { nftRuleset } from './nftables.ts';
import { type InterceptionOptions, PASSTHROUGH } from './options.ts';

/** Rules are a few hundred lines for the kernel; only a lock of another program takes time. */
const LIMIT = 30_000;

/** How much is kept of what a program prints: rules of others may be many. */
const MAX_OUTPUT = 4 * 1024 * 1024;

/** The rules could not be applied; the message says why and what is needed. */
export class InterceptionError extends Error {
  override readonly name = 'InterceptionError';
  readonly code = 'INTERCEPTION';
}

/**
 * Makes the rules those of this network namespace, in place of earlier ones of ours, and adds the address that they let
 * pass. With nft where there is one, else with iptables. Resolves with the name of the program used.
 */
export async function applyInterception(options: InterceptionOptions, signal: AbortSignal): Promise<string> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT)]);
  if (options.families.includes('ip6')) await addPassthroughAddress(limited);
  if ((await run('nft', ['-f', '-'], nftRuleset(options), limited)) !== undefined) return 'nft';
  for (const family of options.families) {
    const prefix = family === 'ip' ? 'iptables' : 'ip6tables';
    const saved = await run(`${prefix}-save`, [], '', limited);
    const applied =
      saved === undefined
        ? undefined
        : await run(`${prefix}-restore`, ['--noflush'], iptablesRules(options, family, saved), limited);
    if (applied === undefined)
      throw new InterceptionError(`neither nft nor ${prefix}-restore is on PATH; use an image that has one of them`);
  }
  return 'iptables';
}

/** All of 127.0.0.0/8 is an address of a Pod from the beginning; of IPv6, there is only ::1. */
async function addPassthroughAddress(signal: AbortSignal): Promise<void> {
  if (!existsSync('/proc/net/if_inet6')) return;
  const args = ['-6', 'address', 'replace', `${PASSTHROUGH.ip6}/128`, 'dev', 'lo', 'nodad'];
  if ((await run('ip', args, '', signal)) === undefined)
    throw new InterceptionError('the program ip is not on PATH; use an image that has it (iproute2)');
}

/** What the program prints; undefined if there is no such program. */
function run(
  program: string,
  args: readonly string[],
  input: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], signal });
    let [printed, failure] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (printed.length < MAX_OUTPUT) printed += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      failure = (failure + text).slice(0, 1000);
    });
    // If it ends without reading, its exit code says why.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') resolve(undefined);
      else reject(new InterceptionError(`${program}: ${error.message}`, { cause: error }));
    });
    child.once('close', (code) => {
      if (code === 0) resolve(printed);
      else reject(new InterceptionError(`${program} failed: ${firstLine(failure)}${hintFor(failure)}`));
    });
  });
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0] ?? '';
}

function hintFor(failure: string): string {
  return /permitted|permission/i.test(failure) ? '; it needs the user root with the capability NET_ADMIN' : '';
}
