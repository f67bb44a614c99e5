import { accessSync, constants, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { AgentConfigError } from './settings/config-fields.ts';

/** Makes it if it is not there. Throws {@link AgentConfigError} if this process cannot write to it. */
export function needDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw new AgentConfigError(`cannot write to ${path} (${codeOf(error)}); mount an emptyDir there`);
  }
}

/** Whether there is a unix socket, or a link to one. */
export function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket();
  } catch {
    return false;
  }
}

/** Throws {@link AgentConfigError}: the disk is full, for example. */
export function writeNeeded(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new AgentConfigError(`cannot write ${path} (${codeOf(error)})`);
  }
}

/** Nothing depends on it: a disk may have become read-only. */
export function removeFile(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // Whoever reads it next does not believe it blindly.
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

/** For `kubectl describe pod`. */
export function reportEnd(reason: string): void {
  try {
    writeFileSync('/dev/termination-log', reason, { flag: 'r+' });
  } catch {
    // Only in a Pod there is one.
  }
}

/** Without loopback and those that are good on one link only. */
export function ownAddresses(): readonly { readonly interface: string; readonly address: string }[] {
  return Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
      .map(({ address }) => ({ interface: name, address })),
  );
}
