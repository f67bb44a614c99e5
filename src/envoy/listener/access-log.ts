import type { ListenerSettings } from '../../model/mesh-config.ts';
import type { AccessLog, SubstitutionFormatString } from '../gen/types.gen.ts';
import { any, type Json } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { struct } from '../encode/wrappers.ts';

export type AccessLogSettings = Pick<
  ListenerSettings,
  'accessLogFile' | 'accessLogFormat' | 'accessLogEncoding' | 'listenerAccessLog'
>;

/** The logs for requests and connections; none unless the mesh config names a file. */
export function accessLogs(settings: AccessLogSettings): readonly AccessLog[] {
  return settings.accessLogFile === '' ? [] : [fileLog(settings)];
}

/** The listener's own log: connections that match no filter chain, which no other log sees. */
export function listenerAccessLogs(settings: AccessLogSettings): readonly AccessLog[] {
  if (settings.accessLogFile === '' || !settings.listenerAccessLog) return [];
  return [{ ...fileLog(settings), filter: { responseFlagFilter: { flags: ['NR'] } } }];
}

function fileLog(settings: AccessLogSettings): AccessLog {
  return {
    name: 'envoy.access_loggers.file',
    typedConfig: any(types.fileAccessLog, {
      path: settings.accessLogFile,
      logFormat: logFormat(settings),
    }),
  };
}

function logFormat(settings: AccessLogSettings): SubstitutionFormatString {
  const { accessLogFormat: format } = settings;
  const formatters = format.includes('%REQ_WITHOUT_QUERY')
    ? [
        {
          name: 'envoy.formatter.req_without_query',
          typedConfig: any('envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery', {}),
        },
      ]
    : undefined;
  if (settings.accessLogEncoding === 'JSON') {
    // The reconciler has checked that this is a JSON object.
    const json = format === '' ? defaultJson : (JSON.parse(format) as Readonly<Record<string, Json>>);
    return { jsonFormat: struct(json), jsonFormatOptions: { sortProperties: false }, formatters };
  }
  const text = format === '' ? defaultText : format;
  return { textFormatSource: { inlineString: text.endsWith('\n') ? text : `${text}\n` }, formatters };
}

/** Istio's format: dashboards and log parsers rely on the order of the fields. */
const defaultText =
  [
    '[%START_TIME%]',
    '"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%"',
    '%RESPONSE_CODE%',
    '%RESPONSE_FLAGS%',
    '%RESPONSE_CODE_DETAILS%',
    '%CONNECTION_TERMINATION_DETAILS%',
    '"%UPSTREAM_TRANSPORT_FAILURE_REASON%"',
    '%BYTES_RECEIVED%',
    '%BYTES_SENT%',
    '%DURATION%',
    '%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%',
    '"%REQ(X-FORWARDED-FOR)%"',
    '"%REQ(USER-AGENT)%"',
    '"%REQ(X-REQUEST-ID)%"',
    '"%REQ(:AUTHORITY)%"',
    '"%UPSTREAM_HOST%"',
    '%UPSTREAM_CLUSTER_RAW%',
    '%UPSTREAM_LOCAL_ADDRESS%',
    '%DOWNSTREAM_LOCAL_ADDRESS%',
    '%DOWNSTREAM_REMOTE_ADDRESS%',
    '%REQUESTED_SERVER_NAME%',
    '%ROUTE_NAME%',
  ].join(' ') + '\n';

const defaultJson: Readonly<Record<string, Json>> = {
  authority: '%REQ(:AUTHORITY)%',
  bytes_received: '%BYTES_RECEIVED%',
  bytes_sent: '%BYTES_SENT%',
  connection_termination_details: '%CONNECTION_TERMINATION_DETAILS%',
  downstream_local_address: '%DOWNSTREAM_LOCAL_ADDRESS%',
  downstream_remote_address: '%DOWNSTREAM_REMOTE_ADDRESS%',
  duration: '%DURATION%',
  method: '%REQ(:METHOD)%',
  path: '%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%',
  protocol: '%PROTOCOL%',
  request_id: '%REQ(X-REQUEST-ID)%',
  requested_server_name: '%REQUESTED_SERVER_NAME%',
  response_code: '%RESPONSE_CODE%',
  response_code_details: '%RESPONSE_CODE_DETAILS%',
  response_flags: '%RESPONSE_FLAGS%',
  route_name: '%ROUTE_NAME%',
  start_time: '%START_TIME%',
  upstream_cluster: '%UPSTREAM_CLUSTER_RAW%',
  upstream_host: '%UPSTREAM_HOST%',
  upstream_local_address: '%UPSTREAM_LOCAL_ADDRESS%',
  upstream_service_time: '%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%',
  upstream_transport_failure_reason: '%UPSTREAM_TRANSPORT_FAILURE_REASON%',
  user_agent: '%REQ(USER-AGENT)%',
  x_forwarded_for: '%REQ(X-FORWARDED-FOR)%',
};
