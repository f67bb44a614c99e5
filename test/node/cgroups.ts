import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { poll } from '../peers/process.ts';

const ROOT = '/sys/fs/cgroup';

/** Where cgroups are: a directory per hierarchy of version 1, and the one of version 2. */
async function hierarchies(): Promise<string[]> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' '));
  return mounts.flatMap(([, path = '', type]) =>
    /^cgroup2?$/.test(type ?? '') && path.startsWith(ROOT) ? [path] : [],
  );
}

/** A cgroup of this name in each hierarchy. */
export async function createCgroups(name: string): Promise<void> {
  for (const hierarchy of await hierarchies()) await mkdir(join(hierarchy, name), { recursive: true });
}

/** Removes the cgroup with those in it. Their processes have been killed, but may need a moment to end. */
export async function removeCgroups(name: string): Promise<void> {
  for (const hierarchy of await hierarchies()) {
    const path = join(hierarchy, name);
    await poll(`the end of ${path}`, () => removeTree(path).then(() => (existsSync(path) ? undefined : true)), {
      timeoutMs: 20_000,
    });
  }
}

/** Leaves first. A cgroup that has processes stays, and so do those that it is in. */
async function removeTree(path: string): Promise<void> {
  const children = await readdir(path, { withFileTypes: true }).catch(() => []);
  for (const child of children) if (child.isDirectory()) await removeTree(join(path, child.name));
  await rmdir(path).catch(() => {});
}
