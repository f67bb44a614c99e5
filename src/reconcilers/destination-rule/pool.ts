import type { ConnectionPool, OutlierDetection, RetryBudget } from '../../model/traffic-policy.ts';
import { count, percent, positiveDuration, present, share, wideCount } from './quantities.ts';
import type { Field } from '../field.ts';

export function readConnectionPool(field: Field): ConnectionPool | undefined {
  if (!field.expectObject().isSet) return undefined;
  const tcp = field.get('tcp').expectObject();
  const http = field.get('http').expectObject();
  if (!tcp.isSet && !http.isSet) field.invalid('has neither tcp nor http; set one of them or remove it.');
  return { tcp: readTcp(tcp), http: readHttp(http) };
}

function readTcp(tcp: Field): ConnectionPool['tcp'] {
  const keepalive = tcp.get('tcpKeepalive').expectObject();
  return present({
    maxConnections: count(tcp.get('maxConnections')),
    connectTimeout: positiveDuration(tcp.get('connectTimeout')),
    // 0s is valid here: idle connections are never closed.
    idleTimeout: tcp.get('idleTimeout').duration(),
    maxConnectionDuration: positiveDuration(tcp.get('maxConnectionDuration')),
    tcpKeepalive: keepalive.isSet
      ? present({
          probes: wideCount(keepalive.get('probes')),
          time: positiveDuration(keepalive.get('time')),
          interval: positiveDuration(keepalive.get('interval')),
        })
      : undefined,
  });
}

function readHttp(http: Field): ConnectionPool['http'] {
  const upgrade = http.get('h2UpgradePolicy');
  const h2UpgradePolicy = upgrade.oneOf('DEFAULT', 'DO_NOT_UPGRADE', 'UPGRADE');
  const useClientProtocol = http.get('useClientProtocol').boolean() ?? false;
  if (useClientProtocol && h2UpgradePolicy === 'UPGRADE')
    upgrade.invalid('UPGRADE contradicts useClientProtocol, which decides; remove one.');
  return {
    ...present({
      http1MaxPendingRequests: count(http.get('http1MaxPendingRequests')),
      http2MaxRequests: count(http.get('http2MaxRequests')),
      maxRequestsPerConnection: count(http.get('maxRequestsPerConnection')),
      maxRetries: count(http.get('maxRetries')),
      idleTimeout: positiveDuration(http.get('idleTimeout')),
      h2UpgradePolicy: h2UpgradePolicy === 'DEFAULT' ? undefined : h2UpgradePolicy,
      maxConcurrentStreams: count(http.get('maxConcurrentStreams')),
      http2KeepAlive: readHttp2KeepAlive(http.get('http2KeepAlive')),
    }),
    useClientProtocol,
  };
}

/** Envoy rejects a cluster whose keepalive has no timeout. */
function readHttp2KeepAlive(field: Field): { readonly interval: number; readonly timeout: number } | undefined {
  if (!field.expectObject().isSet) return undefined;
  const interval = positiveDuration(field.get('interval'));
  const timeout = positiveDuration(field.get('timeout'));
  if (interval !== undefined && timeout !== undefined) return { interval, timeout };
  field.invalid('needs both interval and timeout.');
  return undefined;
}

export function readOutlierDetection(field: Field): OutlierDetection | undefined {
  if (!field.expectObject().isSet) return undefined;
  const splitExternalLocalOriginErrors = field.get('splitExternalLocalOriginErrors').boolean() ?? false;
  const localOrigin = field.get('consecutiveLocalOriginFailures');
  const consecutiveLocalOriginFailures = wideCount(localOrigin);
  if (consecutiveLocalOriginFailures !== undefined && !splitExternalLocalOriginErrors)
    localOrigin.invalid('has no effect without splitExternalLocalOriginErrors: true; set it too.');
  return {
    ...present({
      consecutive5xx: wideCount(field.get('consecutive5xxErrors')),
      consecutiveGatewayErrors: wideCount(field.get('consecutiveGatewayErrors')),
      consecutiveLocalOriginFailures: splitExternalLocalOriginErrors ? consecutiveLocalOriginFailures : undefined,
      interval: positiveDuration(field.get('interval')),
      baseEjectionTime: positiveDuration(field.get('baseEjectionTime')),
      maxEjectionPercent: percent(field.get('maxEjectionPercent')),
      minHealthPercent: percent(field.get('minHealthPercent')),
      failurePercentageThreshold: failurePercentage(field.get('failurePercentageThreshold')),
      httpErrorCodes: readHttpErrorCodes(field.get('outlierDetectionHttpErrorCodes')),
    }),
    splitExternalLocalOriginErrors,
  };
}

/** Every endpoint has at least 0 % of failures. */
function failurePercentage(field: Field): number | undefined {
  const threshold = percent(field);
  if (threshold !== 0) return threshold;
  field.invalid('0 would take out endpoints without failures; write 1 to 100, or remove it.');
  return undefined;
}

function readHttpErrorCodes(field: Field): readonly number[] | undefined {
  const codes = field.list().map((element) => element.integer(100, 599));
  const valid = codes.filter((code) => code !== undefined);
  return valid.length === 0 ? undefined : valid;
}

export function readRetryBudget(field: Field): RetryBudget | undefined {
  if (!field.expectObject().isSet) return undefined;
  return present({
    percent: share(field.get('percent')),
    minRetryConcurrency: wideCount(field.get('minRetryConcurrency')),
    budgetInterval: field.get('budgetInterval').duration(),
  });
}
