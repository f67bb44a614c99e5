import { existsSync } from 'node:fs';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { stagesOf } from '../chart/image.ts';

/** What the stages begin with, other than stages and `scratch`. */
export function basesOf(dockerfile: string): string[] {
  const stages = new Set(['scratch']);
  const bases = new Set<string>();
  for (const [from] of stagesOf(dockerfile)) {
    const [, base = '', stage] = /^(\S+)(?: AS (\S+))?$/.exec(from?.argument ?? '') ?? [];
    if (!stages.has(base)) bases.add(base);
    if (stage !== undefined) stages.add(stage);
  }
  return [...bases];
}

/** Without the digests of its base images, which those that are made here do not have. */
export function withoutDigests(dockerfile: string): string {
  return dockerfile.replace(/^(FROM \S+?)@sha256:[0-9a-f]{64}/gm, '$1');
}

/** The files that a Dockerfile copies from its context: name -> path. */
export async function copiedFiles(dockerfile: string, context: string): Promise<(readonly [string, string])[]> {
  const sources = stagesOf(dockerfile)
    .flat()
    .filter(({ name, argument }) => name === 'COPY' && !argument.startsWith('--from='))
    .flatMap(({ argument }) => argument.split(' ').slice(0, -1));
  const files: (readonly [string, string])[] = [];
  for (const source of sources) {
    const path = join(context, source);
    if (!(await stat(path)).isDirectory()) files.push([source, path]);
    else {
      const entries = await readdir(path, { recursive: true, withFileTypes: true });
      const inside = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
      files.push(...inside.sort().map((file) => [file.slice(context.length + 1), file] as const));
    }
  }
  return files;
}

/** Where npm looks in the image, whose steps root runs. */
const HOME = '/root';

/**
 * Arguments for a build whose steps may run npm: with this machine's cache, and the certificates of its own that it
 * trusts, if it has any.
 */
export async function npmVolumes(directory: string): Promise<string[]> {
  const cache = join(homedir(), '.npm');
  const volumes = existsSync(cache) ? ['--volume', `${cache}:${HOME}/.npm`] : [];
  const certificates = process.env['NODE_EXTRA_CA_CERTS'];
  if (certificates) {
    const settings = join(directory, 'npmrc');
    await writeFile(settings, 'cafile=/etc/extra-certificates.pem\n');
    volumes.push(
      '--volume',
      `${certificates}:/etc/extra-certificates.pem:ro`,
      '--volume',
      `${settings}:${HOME}/.npmrc:ro`,
    );
  }
  return volumes;
}
