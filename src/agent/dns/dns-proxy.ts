import { isIP } from 'node:net';
import type { AgentSettings } from '../settings/settings.ts';
import { startDnsServer } from './dns-server.ts';
import { Names } from './names.ts';
import { parseResolvConf } from './resolv-conf.ts';
import { type DnsCounts, Responder } from './responder.ts';
import { Upstream } from './upstream.ts';

/** Answers the names of the mesh for the applications of a Pod, whose queries are led here. */
export interface DnsProxy {
  readonly names: Names;
  readonly port: number;
  counts(): DnsCounts;
}

export interface DnsProxyOptions {
  readonly settings: Pick<AgentSettings, 'domain' | 'pod' | 'env' | 'proxy'>;
  readonly resolvConf: string;
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Rejects if its port is taken. */
export async function startDnsProxy({ settings, resolvConf, random, signal }: DnsProxyOptions): Promise<DnsProxy> {
  const { servers, search } = parseResolvConf(resolvConf);
  const { namespace } = settings.pod;
  const names = new Names({
    namespace,
    // `shop.svc.cluster.local` is the domain of a Pod in the namespace shop.
    domain: settings.domain.replace(/^[^.]+\.svc\./, ''),
    search: search[0] ?? '',
  });
  const { host, port } = addressOf(settings.env['DNS_PROXY_ADDR'] ?? '');
  const addresses = host === 'localhost' ? ['127.0.0.1', '::1'] : [host];
  const responder = new Responder({ names, upstream: new Upstream({ servers, random }), random });
  return {
    names,
    port: await startDnsServer({ addresses, port, responder, signal }),
    counts: () => responder.counts(),
  };
}

/** `host:port`; Istio's default if it is nothing of that kind. */
function addressOf(text: string): { readonly host: string; readonly port: number } {
  const [, host = '', port = ''] = /^\[?([^\]]*?)\]?:(\d{1,5})$/.exec(text) ?? [];
  const usable = (host === 'localhost' || isIP(host) !== 0) && Number(port) <= 65_535;
  return usable ? { host, port: Number(port) } : { host: 'localhost', port: 15_053 };
}
