import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cacheDirectory } from '../peers/parts.ts';
import { pathOf } from '../peers/peer.ts';
import { run } from '../peers/process.ts';

/** Where images are built and kept. */
export const IMAGES = join(cacheDirectory(), 'images');

/** Each change of the sources adds about ten; beyond this, everything is built again. */
const MOST_IMAGES = 300;

/** Runs a program with the libraries of the unpacked packages, where its mounts are its own. Throws if it fails. */
export async function runWithPackages(path: string, args: readonly string[], signal?: AbortSignal): Promise<string> {
  await mkdir(IMAGES, { recursive: true });
  const packages = dirname(dirname(pathOf('buildah')));
  const { code, stdout, stderr } = await run(
    'unshare',
    [
      ...['--mount', '--propagation', 'private', '--', 'nice'],
      ...[join(import.meta.dirname, 'with-libraries.sh'), packages, join(IMAGES, 'ld.so.cache')],
      ...[path, ...args],
    ],
    { signal },
  );
  if (code !== 0) throw new Error(`${path} ${args.join(' ')}: exit code ${code}\n${stdout}${stderr}`);
  return stdout;
}

/** Runs buildah, which needs no daemon. Not two at once: see `lock`. */
export async function buildah(command: string, args: readonly string[], signal?: AbortSignal): Promise<string> {
  const policy = join(IMAGES, 'policy.json');
  const registries = join(IMAGES, 'registries.conf');
  await mkdir(IMAGES, { recursive: true });
  // Images are made here, and none is pulled.
  await writeFile(policy, '{"default":[{"type":"insecureAcceptAnything"}]}');
  await writeFile(registries, 'unqualified-search-registries = ["docker.io"]\n');
  const settings = {
    // In a changed root, with the network of the machine: no network of containers is needed.
    build: ['--signature-policy', policy, '--isolation', 'chroot'],
    push: ['--signature-policy', policy],
  }[command];
  // Else there would be a directory under /etc of this machine.
  const configuration = join(IMAGES, 'containers.conf');
  await writeFile(configuration, `[network]\nnetwork_config_dir = "${join(IMAGES, 'networks')}"\n`);
  return runWithPackages(
    'env',
    [
      ...[`CONTAINERS_CONF=${configuration}`, pathOf('buildah')],
      ...['--storage-driver', 'overlay', '--root', join(IMAGES, 'store'), '--runroot', join(IMAGES, 'run')],
      ...['--registries-conf', registries, command, ...(settings ?? []), ...args],
    ],
    signal,
  );
}

/** Bounds what the store takes. */
export async function clearFullStore(signal?: AbortSignal): Promise<void> {
  const images = (await buildah('images', ['--all', '--quiet'], signal)).trim().split('\n');
  if (images.length <= MOST_IMAGES) return;
  for (const directory of ['store', 'run']) await rm(join(IMAGES, directory), { recursive: true, force: true });
}
