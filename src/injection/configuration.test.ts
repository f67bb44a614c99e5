import { expect, test } from 'vitest';
import { loadInjection } from './configuration.ts';

const settings = 'proxy: {image: p, discoveryAddress: "f:1"}';
const sidecar = 'spec:\n  containers:\n    - name: istio-proxy\n      image: ${image}\n';

/** Files in, and `FILE:LINE: MESSAGE` out. */
function problemsOf(files: Readonly<Record<string, string>>): string[] {
  const loaded = loadInjection(new Map(Object.entries({ 'config.yaml': settings, 'sidecar.yaml': sidecar, ...files })));
  return 'config' in loaded ? [] : loaded.problems.map(({ file, line, message }) => `${file}:${line}: ${message}`);
}

test('a set without mistakes is loaded, and other files are left alone', () => {
  expect(problemsOf({ 'README.md': 'x: [', '..data': '' })).toEqual([]);
});

test.each([
  ['not YAML', 'spec:\n  containers: [', /^team\.yaml:2: .*YAML/],
  ['a Go template', 'spec:\n  containers:\n  - name: {{ .Name }}\n', /^team\.yaml:3: .*template/],
  [
    'an unknown value',
    'metadata:\n  labels:\n    a: ${podname}',
    /^team\.yaml:3: \$\{podname\} is unknown; known are image,/,
  ],
  [
    'a value in another case',
    '# x\nmetadata: {labels: {a: "${clusterID}"}}',
    /^team\.yaml:2: .*did you mean "clusterId"/,
  ],
  ['not a Pod', 'kind: Deployment', /^team\.yaml:1: kind must be Pod/],
  ['a part that Pods do not have', 'template: {}', /^team\.yaml:1: template is unknown/],
  ['a list that is a map', 'spec:\n  volumes: {}', /^team\.yaml:2: spec\.volumes must be a list/],
  [
    'a container without a name',
    'spec:\n  containers:\n    - image: x',
    /^team\.yaml:3: spec\.containers\[0\] needs the field name/,
  ],
  [
    'two containers of a name',
    'spec:\n  containers:\n    - name: x\n    - name: x',
    /^team\.yaml:4: .*has the name "x" of another/,
  ],
  ['a number as a label', 'metadata:\n  labels:\n    a: 1', /^team\.yaml:3: metadata\.labels\.a must be text/],
  [
    'a port that is text',
    'spec:\n  containers:\n    - name: x\n      ports:\n        - containerPort: "80"',
    /^team\.yaml:5: /,
  ],
  [
    'a value of the wrong kind',
    'spec:\n  containers:\n    - name: x\n      args: ${resources}',
    /^team\.yaml:4: .*args must be a list/,
  ],
  ['nothing', '', /^team\.yaml:1: must be a map/],
])('a template is refused with its line: %s', (_, text, says) => {
  const problems = problemsOf({ 'team.yaml': text });
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(says);
});

test.each([
  ['', /^config\.yaml:1: needs the field proxy/],
  ['a: [', /^config\.yaml:1: .*YAML/],
  ['- a', /^config\.yaml:1: must be a map/],
  [`${settings}\nplicy: enabled`, /^config\.yaml:2: plicy is unknown; known are revision/],
  [`${settings}\npolicy: on`, /^config\.yaml:2: policy must be enabled or disabled/],
  [`${settings}\ndefaultTemplates: [other]`, /^config\.yaml:0: .*there is no other\.yaml/],
  [
    `proxy:\n  image: p\n  discoveryAddress: "f:1"\n  excludeInboundPorts: a`,
    /^config\.yaml:4: proxy\.excludeInboundPorts: "a" is not a port/,
  ],
  [
    `${settings}\nneverInjectSelector:\n- matchExpressions: [{key: a, operator: Is}]`,
    /^config\.yaml:3: .*operator must be In or/,
  ],
])('settings are refused with their line: %j', (text, says) => {
  expect(problemsOf({ 'config.yaml': text })[0]).toMatch(says);
});

test('every file with a mistake is named', () => {
  expect(problemsOf({ 'a.yaml': 'x: 1', 'b.yaml': '[', 'config.yaml': 'x: 1' })).toHaveLength(3);
});
