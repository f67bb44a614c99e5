import type { KubernetesObject } from '../../api/object.ts';
import { objectKey, refOf } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { canonicalHost, resolveShortName } from '../../model/host.ts';
import { coverOf } from '../../model/host-set.ts';
import { meshGateway, type VirtualServiceModel } from '../../model/virtual-service.ts';
import { matchesOf } from '../../model/virtual-service-parts.ts';
import { checkExports, settleExportTo } from '../export-to.ts';
import { quote } from '../../api/quote.ts';
import { Field, Findings } from '../field.ts';
import { findUnsupported } from '../unsupported-fields.ts';
import { checkClaims } from './claims.ts';
import { readHttpRoute } from './http.ts';
import { readTcpRoute, readTlsRoute } from './l4.ts';
import { isHost, resolveGateway } from './names.ts';

export interface VirtualServiceContext {
  readonly source: string;
  readonly domainSuffix: string;
  readonly rootNamespace: string;
  readonly defaultExportTo: readonly string[];
}

export interface ReconciledVirtualService {
  /**
   * The model, or none: a list of routes is served whole or not at all, because without one route its requests would
   * take the next. If there is a model, problems name what is ignored.
   */
  readonly models: readonly VirtualServiceModel[];
  readonly problems: readonly Problem[];
}

export function reconcileVirtualService(
  object: KubernetesObject & { readonly spec?: unknown },
  context: VirtualServiceContext,
): ReconciledVirtualService {
  const { name, namespace = '', creationTimestamp = '' } = object.metadata;
  const findings = new Findings(refOf(context.source, object));
  const spec = new Field(object.spec, 'spec', findings).expectObject();
  const names = { namespace, domainSuffix: context.domainSuffix, byRoot: namespace === context.rootNamespace };

  const written = readHosts(spec.get('hosts'));
  const hosts = [...new Set(written.map((host) => resolveShortName(host, namespace, context.domainSuffix)))];
  // As written, and as resolved.
  const hasHost = coverOf([...written.map(canonicalHost), ...hosts]);
  const gateways = spec
    .get('gateways')
    .list()
    .map((gateway) => resolveGateway(gateway, namespace));
  const http = spec.get('http').objects();
  const tcp = spec.get('tcp').objects();
  const tls = spec.get('tls').objects();
  if (http.length + tcp.length + tls.length === 0) spec.invalid('needs at least one route in http, tls or tcp.');
  if (hosts.length === 0) checkDelegate(spec, http);

  const model: VirtualServiceModel = {
    key: objectKey(context.source, namespace, name),
    ref: findings.object,
    name,
    namespace,
    createdAt: creationTimestamp,
    hosts,
    gateways: gateways.length === 0 ? [meshGateway] : gateways,
    exportTo: settleExportTo(spec.get('exportTo').strings(), namespace, context.defaultExportTo),
    http: http.map((route) => readHttpRoute(route, names)),
    tcp: tcp.map((route) => readTcpRoute(route, names)),
    tls: tls.map((route) => readTlsRoute(route, names, hasHost)),
  };
  const sources = matchesOf(model).filter(({ sourceLabels }) => Object.keys(sourceLabels).length > 0);
  checkExports(spec.get('exportTo'), model.exportTo, Math.max(1, hosts.length, sources.length));
  checkClaims(model, findings);
  const problems = [...findings.problems, ...findUnsupported(findings.object, object.spec)];
  return { models: findings.invalid ? [] : [model], problems };
}

function readHosts(field: Field): string[] {
  return field.list().map((element) => {
    const host = element.string();
    if (!isHost(host)) {
      element.invalid(
        `${quote(host)} is not a host name; write a name, an IP address or a wildcard such as *.example.com.`,
      );
    }
    return host;
  });
}

/** Without hosts, it only lends its http routes to others. */
function checkDelegate(spec: Field, http: readonly Field[]): void {
  for (const name of ['gateways', 'tls', 'tcp']) {
    if (spec.get(name).list().length > 0) {
      spec.get(name).invalid('is not allowed without hosts: this VirtualService is only a delegate. Add spec.hosts.');
    }
  }
  for (const route of http) {
    const delegate = route.get('delegate');
    if (delegate.isSet) delegate.invalid('is not allowed in a delegate; delegation has only one level.');
  }
}
