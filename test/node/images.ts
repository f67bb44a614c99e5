import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { lock } from '../peers/lock.ts';
import { pathOf } from '../peers/peer.ts';
import { type Base, baseFor } from './base-images.ts';
import { IMAGES, buildah, clearFullStore } from './buildah.ts';
import { PAUSE_IMAGE } from './configuration.ts';
import { DNS_IMAGE } from './dns.ts';
import { basesOf, copiedFiles, npmVolumes, withoutDigests } from './dockerfiles.ts';

/** An image, as a Dockerfile and what it copies. */
export interface Image {
  /** With its registry and tag. */
  readonly name: string;
  readonly dockerfile: string;
  /** Its context: either the repository or single files, target name -> path. */
  readonly context: string | Readonly<Record<string, string>>;
}

/** One program and nothing else. It must be linked statically. */
export function programImage(name: string, program: string, ...args: string[]): Image {
  const file = basename(program);
  return {
    name,
    dockerfile: `FROM scratch\nCOPY ${file} /${file}\nENTRYPOINT ${JSON.stringify([`/${file}`, ...args])}\n`,
    context: { [file]: program },
  };
}

/** What a node itself needs. */
export async function nodeImages(signal?: AbortSignal): Promise<string[]> {
  return buildImages(
    [programImage(PAUSE_IMAGE, pathOf('busybox'), 'sleep', 'infinity'), programImage(DNS_IMAGE, pathOf('coredns'))],
    signal,
  );
}

/** How many archives of an image are kept. */
const MOST_ARCHIVES = 2;

/** Archives of the images, not compressed, in this order: from the cache, or built now. */
export async function buildImages(images: readonly Image[], signal?: AbortSignal): Promise<string[]> {
  await mkdir(IMAGES, { recursive: true });
  const archives = await Promise.all(images.map(async (image) => archiveOf(image, await keyOf(image))));
  if (archives.every((archive) => existsSync(archive))) {
    // So that those in use are the newest.
    const now = new Date();
    for (const archive of archives) await utimes(archive, now, now);
    return archives;
  }
  const unlock = await lock(join(IMAGES, 'lock'), { signal });
  try {
    await clearFullStore(signal);
    for (const [index, image] of images.entries()) {
      const archive = archives[index]!;
      if (!existsSync(archive)) await build(image, await keyOf(image), archive, signal);
    }
  } finally {
    unlock();
  }
  return archives;
}

function archiveOf({ name }: Image, key: string): string {
  return join(IMAGES, basename(name).replace(':', '-'), `${key}.tar`);
}

/** Covers everything that determines the content of the image. */
async function keyOf({ dockerfile, context, name }: Image): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([name, dockerfile]));
  for (const base of basesOf(withoutDigests(dockerfile))) hash.update(await baseFor(base).key());
  const files = typeof context === 'string' ? await copiedFiles(dockerfile, context) : Object.entries(context);
  for (const [target, path] of files) {
    hash.update(`${target}\0`).update(
      createHash('sha256')
        .update(await readFile(path))
        .digest(),
    );
  }
  return hash.digest('hex').slice(0, 32);
}

async function build(image: Image, key: string, archive: string, signal: AbortSignal | undefined): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-image-'));
  try {
    const dockerfile = withoutDigests(image.dockerfile);
    for (const base of basesOf(dockerfile)) await provide(baseFor(base), directory, signal);
    const file = join(directory, 'Dockerfile');
    await writeFile(file, dockerfile);
    let context = image.context;
    if (typeof context !== 'string') {
      const files = join(directory, 'context');
      for (const [target, path] of Object.entries(context)) {
        await mkdir(dirname(join(files, target)), { recursive: true });
        await cp(path, join(files, target), { dereference: true });
      }
      context = files;
    }
    const tag = `localhost/kept:${key}`;
    await buildah(
      'build',
      [
        ...['--pull=never', '--layers', '--quiet', ...(await npmVolumes(IMAGES))],
        ...['--file', file, '--tag', tag, context],
      ],
      signal,
    );
    await mkdir(dirname(archive), { recursive: true });
    await removeOldArchives(dirname(archive));
    const unfinished = `${archive}.tmp-${process.pid}`;
    try {
      await buildah('push', ['--quiet', tag, `docker-archive:${unfinished}:${image.name}`], signal);
      await rename(unfinished, archive);
    } finally {
      await rm(unfinished, { force: true });
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Gives the base its name in the store; makes it if it is not there. */
async function provide(base: Base, directory: string, signal: AbortSignal | undefined): Promise<void> {
  const tag = `localhost/kept:${await base.key()}`;
  const known = await buildah('images', ['--quiet', '--filter', `reference=${tag}`], signal);
  if (known.trim() === '') {
    const context = join(directory, 'base');
    await mkdir(context);
    const dockerfile = join(directory, 'Dockerfile.base');
    await writeFile(dockerfile, await base.make(context, signal));
    await buildah('build', ['--quiet', '--file', dockerfile, '--tag', tag, context], signal);
    await rm(context, { recursive: true, force: true });
  }
  await buildah('tag', [tag, base.name], signal);
}

async function removeOldArchives(directory: string): Promise<void> {
  const files = await Promise.all(
    (await readdir(directory)).map(async (name) => {
      const path = join(directory, name);
      return { path, time: (await stat(path)).mtimeMs };
    }),
  );
  const old = files.sort((a, b) => b.time - a.time).slice(MOST_ARCHIVES - 1);
  for (const { path } of old) await rm(path, { force: true });
}
