import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { chmod, cp, mkdir, readFile, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { PARTS, directoryOf, outputOf } from '../peers/parts.ts';
import { pathOf } from '../peers/peer.ts';
import { runWithPackages } from './buildah.ts';

/**
 * An image that a Dockerfile begins with, made here from packages, because none can be pulled: what a Dockerfile takes
 * from it is the same.
 */
export interface Base {
  /** With its registry. */
  readonly name: string;
  /** Covers what it is made from. */
  key(): Promise<string>;
  /** Writes its files into an empty directory, and returns the Dockerfile for these. */
  make(directory: string, signal?: AbortSignal): Promise<string>;
}

/** @param reference as in the Dockerfile. Throws if it is not one of those that are known. */
export function baseFor(reference: string): Base {
  const [, node, release = ''] = /^node:([\d.]+)-([a-z]+)-slim$/.exec(reference) ?? [];
  if (node !== undefined) return nodeBase(reference, node, release);
  const [, distroless] = /^gcr\.io\/distroless\/cc-debian(\d+):nonroot$/.exec(reference) ?? [];
  const codename = RELEASES.get(distroless);
  if (codename !== undefined) return distrolessBase(reference, codename);
  const [, envoy] = /^envoyproxy\/envoy:distroless-v([\d.]+)$/.exec(reference) ?? [];
  if (envoy !== undefined) return envoyBase(reference, envoy);
  throw new Error(`${reference}: this base image cannot be made here. Add it to test/node/base-images.ts`);
}

/** Changes when base images are made differently from the same things. */
const RECIPE = 2;

const RELEASES: ReadonlyMap<string | undefined, string> = new Map([['12', 'bookworm']]);

const PATH = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Debian's smallest system, Node of this repository's packages, and the npm of this machine. */
function nodeBase(reference: string, version: string, release: string): Base {
  return {
    name: `docker.io/library/${reference}`,
    key: async () => keyOf(reference, await readFile(join(await npmDirectory(), 'package.json'), 'utf8')),
    async make(directory, signal) {
      const node = join(directory, 'node');
      const packaged = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`);
      const { version: found } = createRequire(import.meta.url)(`node-linux-${process.arch}/package.json`) as {
        version: string;
      };
      if (found !== version) throw new Error(`${reference}: package.json has Node ${found}`);
      await cp(packaged, node);
      await cp(await npmDirectory(), join(directory, 'npm'), { recursive: true, dereference: true });
      const system = join(directory, 'system');
      await installDebian(release, system, [], signal);
      for (const path of ['var/cache/apt/archives', 'usr/share/doc', 'usr/share/man', 'usr/share/locale']) {
        await rm(join(system, path), { recursive: true, force: true });
        await mkdir(join(system, path));
      }
      await writeFile(join(system, 'etc/apt/apt.conf.d/offline'), aptSettings());
      // With the owners of the files, which copying would change.
      await runWithPackages(
        'tar',
        ['--create', '--file', join(directory, 'system.tar'), '--directory', system, '.'],
        signal,
      );
      await rm(system, { recursive: true, force: true });
      return [
        'FROM scratch',
        'ADD system.tar /',
        'COPY node /usr/local/bin/node',
        'COPY npm /usr/local/lib/node_modules/npm',
        PATH,
        'RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && useradd --uid 1000 --user-group node',
        'CMD ["node"]',
      ].join('\n');
    },
  };
}

/** Of Debian's packages, what cc of distroless has of them; the C library is what matters, and that there is no shell. */
function distrolessBase(reference: string, release: string): Base {
  return {
    name: reference,
    key: () => Promise.resolve(keyOf(reference)),
    async make(directory, signal) {
      const system = join(directory, 'system');
      await installDebian(release, system, ['ca-certificates', 'netbase', 'tzdata'], signal);
      const lists = join(system, 'var/lib/dpkg/info');
      const named = (await readdir(lists)).filter((name) => DISTROLESS.test(name));
      const listed = await Promise.all(named.map((name) => readFile(join(lists, name), 'utf8')));
      // In distroless, /lib and /usr/lib are two directories.
      const files = [
        'etc/ssl/certs/ca-certificates.crt',
        ...listed
          .join('')
          .split('\n')
          .map((path) => path.slice(1)),
      ]
        .filter((path) => path !== '' && !/^(usr\/share\/(doc|man|locale)|s?bin|lib\w*$)/.test(path))
        .filter((path) => lstatSync(join(system, path), { throwIfNoEntry: false })?.isDirectory() === false);
      await writeFile(join(directory, 'files'), [...new Set(files)].join('\n'));
      await runWithPackages(
        'tar',
        [
          '--create',
          '--file',
          join(directory, 'system.tar'),
          '--directory',
          system,
          '--files-from',
          join(directory, 'files'),
        ],
        signal,
      );
      await rm(system, { recursive: true, force: true });
      await writeFile(
        join(directory, 'passwd'),
        'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n',
      );
      await mkdir(join(directory, 'tmp'));
      await chmod(join(directory, 'tmp'), 0o1777);
      return ['FROM scratch', 'ADD system.tar /', 'COPY passwd /etc/passwd', 'COPY tmp /tmp', PATH, 'USER 65532'].join(
        '\n',
      );
    },
  };
}

const DISTROLESS = /^(base-files|ca-certificates|libc6|libgcc-s1|libgomp1|libstdc\+\+6|netbase|tzdata)(:\w+)?\.list$/;

/** The smallest system of a release of Debian, and these packages. */
async function installDebian(
  release: string,
  system: string,
  packages: readonly string[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const debootstrap = pathOf('debootstrap');
  const source = mirror(release);
  if (source === undefined) throw new Error(`no source of packages of Debian ${release} on this machine`);
  await runWithPackages(
    'env',
    [
      `DEBOOTSTRAP_DIR=${join(dirname(dirname(debootstrap)), 'usr/share/debootstrap')}`,
      ...[debootstrap, '--variant=minbase', ...packages.map((name) => `--include=${name}`), release, system, source],
    ],
    signal,
  );
}

/** The program of the wheel that the other tests use. */
function envoyBase(reference: string, version: string): Base {
  return {
    name: `docker.io/${reference}`,
    key: () =>
      Promise.resolve(
        keyOf(reference, process.env['ENVOY_BIN'] ?? directoryOf(PARTS.find((part) => part.name === 'envoy')!)),
      ),
    async make(directory) {
      const envoy = pathOf('envoy');
      const found = outputOf(envoy, '--version') ?? '';
      if (!found.includes(`/${version}/`))
        throw new Error(`${reference}: the Envoy here is${found.trim().replace(/.*version:/, '')}`);
      await cp(envoy, join(directory, 'envoy'), { dereference: true });
      return `FROM scratch\nCOPY envoy /usr/local/bin/envoy\n${PATH}\nENTRYPOINT ["/usr/local/bin/envoy"]\n`;
    },
  };
}

function keyOf(...what: string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([RECIPE, process.arch, ...what]))
    .digest('hex')
    .slice(0, 32);
}

/** The npm on the PATH. */
async function npmDirectory(): Promise<string> {
  for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
    const npm = await realpath(join(directory, 'npm')).catch(() => undefined);
    if (npm?.endsWith('/npm/bin/npm-cli.js')) return dirname(dirname(npm));
  }
  throw new Error('no npm on the PATH');
}

/** Where this machine has packages of a Debian release from; undefined if nowhere. */
export function mirror(release: string): string | undefined {
  const sources = outputOf('apt-get', 'indextargets', '--format', '$(CODENAME) $(COMPONENT) $(REPO_URI)') ?? '';
  const source = sources.split('\n').find((line) => line.startsWith(`${release} main `));
  return source?.split(' ')[2];
}

/** How apt of this machine reaches its sources. */
function aptSettings(): string {
  const settings = outputOf('apt-config', 'dump', '--format', '%f "%v";%n', 'Acquire') ?? '';
  return settings
    .split('\n')
    .filter((line) => /^Acquire::(Check|http|https)[\w:-]* "[^"]*";$/.test(line))
    .map((line) => `${line}\n`)
    .join('');
}
