import { describe, expect, test } from 'vitest';
import { authorizationPolicy, checked, gateway, peerAuthentication, places, virtualService } from './checked.ts';

describe('a mistake in a policy, which stays in force, is told once', () => {
  const of = (spec: string) => checked([peerAuthentication('shop/p', `{${spec}}`)]);
  const at = 'error PeerAuthentication/shop/p spec';

  test('where a value is wrong', () => {
    expect(of('selector: {matchLabels: {app: x}}, portLevelMtls: {"80": {mode: STRIKT}}')).toEqual([
      `${at}.portLevelMtls.80.mode: must be one of UNSET, DISABLE, PERMISSIVE, STRICT`,
    ]);
    expect(of('selector: {matchLabels: {app: x}}, portLevelMtls: {"99999": {mode: STRICT}}')).toEqual([
      `${at}.portLevelMtls: a port is a number from 1 to 65535`,
    ]);
    expect(of('selector: {matchLabels: {app: "*"}}, portLevelMtls: {"80": {mode: STRICT}}')).toEqual([
      `${at}.selector.matchLabels.app: wildcards are not supported in a selector`,
    ]);
  });

  test('where a rule of the schema about several fields is violated', () => {
    expect(of('portLevelMtls: {"80": {mode: STRICT}}')).toEqual([
      `${at}: portLevelMtls requires a selector with matchLabels`,
    ]);
  });

  test('where a field must stay empty', () => {
    const target = '{kind: Service, name: a, namespace: shop}';
    expect(checked([authorizationPolicy('shop/p', `{targetRefs: [${target}]}`)])).toContain(
      'error AuthorizationPolicy/shop/p spec.targetRefs[0].namespace: is not supported; leave it out',
    );
  });

  test('two mistakes are two', () => {
    expect(of('selector: {matchLabels: {app: x}}, mtls: {mode: A}, portLevelMtls: {"80": {mode: B}}')).toHaveLength(2);
  });
});

describe('a template in quotes is told as one, once for each object', () => {
  const told = (line: string) =>
    `error ${line}: looks like a template with {{ ... }}; render it first, for example with "helm template"`;

  test('where a host, a name, a label or a number should be', () => {
    expect(
      checked([
        virtualService(
          'shop/v',
          '{hosts: ["{{ .Values.host }}"], http: [{route: [{destination: {host: "{{ .Release.Name }}-svc"}}]}]}',
        ),
      ]),
    ).toEqual([told('VirtualService/shop/v spec.hosts[0]')]);
    expect(checked([virtualService('shop/"{{ .Release.Name }}"', '{hosts: ["{{ .Values.host }}"]}')])).toEqual([
      told('metadata.name'),
    ]);
    expect(checked([gateway('shop/g', '{servers: []}', ', labels: {a: "{{ .Values.a }}"}')])).toEqual([
      told('Gateway/shop/g metadata.labels.a'),
    ]);
    expect(
      checked([
        virtualService(
          'shop/v',
          '{hosts: [a], http: [{timeout: "{{ .Values.t }}", route: [{destination: {host: a}}]}]}',
        ),
      ]),
    ).toEqual([told('VirtualService/shop/v spec.http[0].timeout')]);
  });

  test('where a variable is not replaced', () => {
    const variable =
      'has a variable that nothing has replaced; render it first, for example with kustomize or envsubst';
    for (const host of ['a.$(NAMESPACE).svc.cluster.local', 'a.${NAMESPACE}.example'])
      expect(checked([virtualService('shop/v', `{hosts: ["${host}"], http: [{redirect: {uri: /a}}]}`)])).toEqual([
        `error VirtualService/shop/v spec.hosts[0]: ${variable}`,
      ]);
  });

  test('other mistakes of the object are told, too, and braces that are valid are not', () => {
    const spec = (host: string, body: string) =>
      `{hosts: ["${host}"], http: [{directResponse: {status: 200, body: {string: "${body}"}}}, {timeout: 1x, route: [{destination: {host: a}}]}]}`;
    expect(places([virtualService('shop/v', spec('{{ .Values.host }}', 'x'))])).toEqual([
      'error VirtualService/shop/v spec.http[1].timeout',
    ]);
    const valid = '{hosts: ["a.example"], http: [{directResponse: {status: 200, body: {string: "{{ name }}"}}}]}';
    expect(places([virtualService('shop/v', valid)])).toEqual([]);
  });
});
