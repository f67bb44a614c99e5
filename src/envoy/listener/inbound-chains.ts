import type { InboundService, InboundTarget } from '../../model/inbound.ts';
import type { ServerTls } from '../../model/gateway.ts';
import type { ListenerSettings } from '../../model/mesh-config.ts';
import type { MtlsMode, PeerModes } from '../../model/peer-authentication.ts';
import { type Protocol, inboundCluster, isHttp2, protocolClass } from '../../model/service.ts';
import { networkFilter } from './filters.ts';
import { inboundPassthroughCluster } from '../../model/cluster-names.ts';
import type { Filter, FilterChain, RouteConfiguration, TransportSocket } from '../gen/types.gen.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { type InboundMatch, inboundMatches, ingressTlsMatch } from './inbound-match.ts';
import { configPath, istioMetadata } from '../istio-metadata.ts';
import { type FilterContext, tcpProxy } from './outbound-filters.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { statName } from '../../model/stat-name.ts';
import type { SecurityFilters } from '../security/authorization.ts';
import { downstreamTls } from '../tls/downstream.ts';
import {
  certificateFiles,
  fileSecret,
  meshRoots,
  rootFile,
  workloadCertificate,
  workloadSecret,
} from '../tls/secrets.ts';

export interface InboundContext extends FilterContext {
  readonly mtls: PeerModes;
  readonly security: SecurityFilters;
}

/** What all chains of one port have in common. */
interface InboundPort {
  /** 0: all ports without chains of their own. */
  readonly port: number;
  readonly protocol: Protocol;
  readonly cluster: string;
  readonly httpName: string;
  readonly tcpName: string;
  readonly statPrefix: string;
  /** For the statistics of TCP connections. */
  readonly tcpStatPrefix: string;
  readonly host: string;
  readonly servicePort: number;
  readonly metadata?: Pick<FilterChain, 'metadata'>;
  readonly tls?: ServerTls;
}

/** The chains of a port of the workload. */
export function buildInboundChains(target: InboundTarget, bind: string, context: InboundContext): FilterChain[] {
  const [service] = target.services;
  const name = `${bind}_${target.port}`;
  const cluster = inboundCluster(target.port);
  return chainsOf(
    {
      port: target.port,
      protocol: target.protocol,
      cluster,
      httpName: name,
      tcpName: name,
      statPrefix: `inbound_${name}`,
      tcpStatPrefix: tcpStatPrefix(cluster, service, context.settings),
      host: service?.host ?? '',
      servicePort: service?.port ?? 0,
      ...(target.ingress?.tls && { tls: target.ingress.tls }),
      ...(target.ingress === undefined || service === undefined
        ? {}
        : {
            metadata: { metadata: istioMetadata({ config: configPath({ ...service, kind: 'Sidecar' }) }) },
          }),
    },
    context.mtls.ports[target.port] ?? context.mtls.mode,
    context,
  );
}

/** Follows the mesh's pattern. As in Istio, the target port is unknown here. */
function tcpStatPrefix(
  cluster: string,
  service: InboundService | undefined,
  { inboundClusterStatName: pattern }: Pick<ListenerSettings, 'inboundClusterStatName'>,
): string {
  if (pattern === '' || service === undefined) return cluster;
  const port = { number: service.port, name: service.portName };
  return statName(pattern, { service, port, targetPort: '%TARGET_PORT%' }) || cluster;
}

/** Replaces the service for connections that lead to none. */
const anyService: InboundService = {
  host: '',
  name: '',
  namespace: '',
  registry: 'External',
  port: 0,
  portName: 'virtualInbound',
};

/** Chains for connections to all other ports, and to ports with a mode of their own but no service. */
export function passthroughChains(served: ReadonlySet<number>, context: InboundContext): FilterChain[] {
  const ports = Object.keys(context.mtls.ports).map(Number);
  return [0, ...ports.filter((port) => !served.has(port)).sort((a, b) => a - b)].flatMap((port) =>
    chainsOf(
      {
        port,
        protocol: 'Unsupported',
        cluster: inboundPassthroughCluster,
        httpName: 'virtualInbound-catchall-http',
        tcpName: 'virtualInbound',
        statPrefix: inboundPassthroughCluster,
        tcpStatPrefix: tcpStatPrefix(inboundPassthroughCluster, anyService, context.settings),
        host: '',
        servicePort: 0,
      },
      context.mtls.ports[port] ?? context.mtls.mode,
      context,
    ),
  );
}

function chainsOf(port: InboundPort, mode: MtlsMode, context: InboundContext): FilterChain[] {
  const ownTls = mode === 'DISABLE' ? port.tls : undefined;
  const possible =
    ownTls === undefined ? inboundMatches(port.protocol, mode, context.traits.agent) : [ingressTlsMatch(port.protocol)];
  const isDetected = protocolClass(port.protocol) === 'sniffed';
  // Without a chain, Envoy closes the connection.
  const matches =
    isDetected && context.security.httpOnly ? possible.filter(({ serves }) => serves === 'http') : possible;
  const filters: Partial<Record<InboundMatch['serves'], Filter[]>> = {};
  const socket = matches.some(({ terminates }) => terminates)
    ? ownTls === undefined
      ? mutualTlsSocket(context)
      : downstreamTls({ ...context, tls: ownTls })
    : undefined;
  return matches.map((match) => ({
    name: match.serves === 'http' ? port.httpName : port.tcpName,
    filterChainMatch: {
      transportProtocol: match.transport,
      ...(match.alpn.length === 0 ? {} : { applicationProtocols: match.alpn }),
      ...(port.port === 0 ? {} : { destinationPort: { value: port.port } }),
    },
    filters: (filters[match.serves] ??=
      match.serves === 'http' ? httpFilters(port, context) : tcpFilters(port, context)),
    ...(match.terminates && socket !== undefined ? { transportSocket: socket } : {}),
    ...port.metadata,
  }));
}

function httpFilters(port: InboundPort, { traits, settings, security }: InboundContext): Filter[] {
  return [
    httpConnectionManager({
      direction: 'inbound',
      traits,
      settings,
      statPrefix: port.statPrefix,
      routes: inlineRoutes(port),
      grpcWeb: port.protocol === 'GRPCWeb',
      http2: isHttp2(port.protocol),
      filters: security.http,
    }),
  ];
}

function tcpFilters(port: InboundPort, context: InboundContext): Filter[] {
  const statPrefix = port.tcpStatPrefix;
  const proxy = tcpProxy({ cluster: port.cluster, statPrefix }, undefined, context);
  const mongo = port.protocol === 'Mongo' ? [networkFilter('mongo_proxy', any(types.mongoProxy, { statPrefix }))] : [];
  return [...context.security.network, ...mongo, proxy];
}

/** All requests to the port go to the workload. The client decides about timeouts, so none is set here. */
function inlineRoutes({ cluster, servicePort, host, protocol }: InboundPort): RouteConfiguration {
  const grpc = protocol === 'GRPC' || protocol === 'GRPCWeb';
  return {
    name: cluster,
    validateClusters: { value: false },
    virtualHosts: [
      {
        name: `inbound|http|${servicePort}`,
        domains: ['*'],
        routes: [
          {
            name: 'default',
            match: { prefix: '/' },
            decorator: { operation: `${host}:${servicePort}/*` },
            route: {
              cluster,
              timeout: { seconds: 0 },
              maxStreamDuration: { maxStreamDuration: { seconds: 0 }, grpcTimeoutHeaderMax: { seconds: 0 } },
              // The workload closed an idle connection just as a request arrived, and has not seen the request.
              ...(grpc ? {} : { retryPolicy: { retryOn: 'reset-before-request', numRetries: { value: 2 } } }),
            },
          },
        ],
      },
    ],
  };
}

/** Istio's ciphers for TLS 1.2. */
const CIPHERS: readonly string[] = [
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'AES256-GCM-SHA384',
  'AES128-GCM-SHA256',
];

/** Terminates mutual TLS with the workload's certificate, for peers of the trust domain and its aliases. */
function mutualTlsSocket({ traits, settings }: InboundContext): TransportSocket {
  const { chain = '', key = '', root = '' } = traits.serverCertificate ?? {};
  const own =
    chain === '' || key === '' ? workloadSecret(workloadCertificate) : fileSecret(certificateFiles(chain, key));
  const domains = [settings.trustDomain, ...settings.trustDomainAliases];
  return {
    name: 'envoy.transport_sockets.tls',
    typedConfig: any(types.downstreamTls, {
      requireClientCertificate: { value: true },
      commonTlsContext: {
        alpnProtocols: ['h2', 'http/1.1'],
        tlsParams: {
          tlsMinimumProtocolVersion: settings.minTlsVersion === 'TLSV1_3' ? 'TLSv1_3' : 'TLSv1_2',
          tlsMaximumProtocolVersion: 'TLSv1_3',
          cipherSuites: settings.meshCipherSuites.length > 0 ? settings.meshCipherSuites : CIPHERS,
        },
        tlsCertificateSdsSecretConfigs: [own],
        combinedValidationContext: {
          defaultValidationContext: {
            matchSubjectAltNames: domains.map((domain) => ({ prefix: `spiffe://${domain}/` })),
          },
          validationContextSdsSecretConfig: root === '' ? workloadSecret(meshRoots) : fileSecret(rootFile(root)),
        },
      },
    }),
  };
}
