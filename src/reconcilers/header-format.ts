import { quote } from './field.ts';

interface Command {
  /** What may stand between the parentheses; without, nothing may. */
  readonly argument?: RegExp;
  /** `:10` behind the command cuts its value. */
  readonly length?: true;
}

const anything = /^[^]*$/;
const something = /[^]/;
/** `name` or `name?other`. */
const headerName = /^:?[!#$%&'*+.^_`|~0-9A-Za-z-]*(\?:?[!#$%&'*+.^_`|~0-9A-Za-z-]*)?$/;
const header = { argument: new RegExp(`(?=.)${headerName.source}`), length: true } as const;
/** `strftime`, without line breaks. */
const time = { argument: /^([^%\n]|%(?!n)|%$)*$/ };
const state = { argument: /^[^:]+(:(PLAIN|TYPED|FIELD)(:.*)?)?$/, length: true } as const;

/** Those of Envoy's commands that take arguments. */
const withArguments: Readonly<Record<string, Command>> = {
  REQ: header,
  RESP: header,
  TRAILER: header,
  REQUEST_HEADER: header,
  DYNAMIC_METADATA: { argument: something, length: true },
  CLUSTER_METADATA: { argument: something },
  UPSTREAM_METADATA: { argument: something },
  METADATA: { argument: /^(DYNAMIC|CLUSTER|ROUTE|UPSTREAM_HOST|LISTENER|VIRTUAL_HOST)(:.*)?$/, length: true },
  FILTER_STATE: state,
  UPSTREAM_FILTER_STATE: state,
  ENVIRONMENT: { argument: something, length: true },
  CEL: { argument: something, length: true },
  TYPED_CEL: { argument: something, length: true },
  QUERY_PARAM: { argument: something, length: true },
  QUERY_PARAMS: { argument: /^(ORIG|DECODED)?$/, length: true },
  PATH: { argument: /^(WQ|NQ)?(:(ORIG|PATH|ORIG_OR_PATH))?$/, length: true },
  COMMON_DURATION: { argument: /^[A-Z_]+:[A-Z_]+(:(ms|us|ns))?$/ },
  START_TIME: time,
  START_TIME_LOCAL: time,
  EMIT_TIME: time,
  EMIT_TIME_LOCAL: time,
  DOWNSTREAM_PEER_CERT_V_START: time,
  DOWNSTREAM_PEER_CERT_V_END: time,
  UPSTREAM_PEER_CERT_V_START: time,
  UPSTREAM_PEER_CERT_V_END: time,
  GRPC_STATUS: { argument: /^(CAMEL_STRING|SNAKE_STRING|NUMBER)?$/ },
  REQUESTED_SERVER_NAME: { argument: /^(SNI_ONLY|SNI_FIRST|HOST_FIRST)?$/ },
  RESPONSE_CODE_DETAILS: { argument: anything },
  UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: { argument: anything },
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: { argument: anything },
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: { argument: anything },
  DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT: { argument: anything },
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT: { argument: anything },
  DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: { argument: anything },
};

/** Those that stand alone. */
const plain = `
  REQUEST_HEADERS_BYTES RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES BYTES_RECEIVED BYTES_SENT BYTES_RETRANSMITTED
  PACKETS_RETRANSMITTED PROTOCOL RESPONSE_CODE CONNECTION_TERMINATION_DETAILS DURATION REQUEST_DURATION
  REQUEST_TX_DURATION RESPONSE_DURATION RESPONSE_TX_DURATION ROUNDTRIP_DURATION CUSTOM_FLAGS RESPONSE_FLAGS
  RESPONSE_FLAGS_LONG CONNECTION_ID ROUTE_NAME HOSTNAME FILTER_CHAIN_NAME VIRTUAL_CLUSTER_NAME TLS_JA3_FINGERPRINT
  TLS_JA4_FINGERPRINT UNIQUE_ID STREAM_ID GRPC_STATUS_NUMBER LOCAL_REPLY_BODY ACCESS_LOG_TYPE TRACE_ID SPAN_ID
  UPSTREAM_PROTOCOL UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_WIRE_BYTES_SENT UPSTREAM_WIRE_BYTES_RECEIVED
  UPSTREAM_HEADER_BYTES_SENT UPSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT
  UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED UPSTREAM_HOST_NAME UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_HOST
  UPSTREAM_CONNECTION_ID UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW UPSTREAM_LOCAL_ADDRESS UPSTREAM_LOCAL_PORT
  UPSTREAM_REMOTE_ADDRESS UPSTREAM_REMOTE_PORT UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_LOCAL_CLOSE_REASON
  UPSTREAM_DETECTED_CLOSE_TYPE UPSTREAM_CONNECTION_POOL_READY_DURATION UPSTREAM_HOSTS_ATTEMPTED
  UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAMES_ATTEMPTED UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT
  UPSTREAM_CONNECTION_IDS_ATTEMPTED UPSTREAM_TLS_SESSION_ID UPSTREAM_TLS_CIPHER UPSTREAM_TLS_VERSION
  UPSTREAM_PEER_ISSUER UPSTREAM_PEER_CERT UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN UPSTREAM_LOCAL_URI_SAN
  UPSTREAM_PEER_DNS_SAN UPSTREAM_LOCAL_DNS_SAN UPSTREAM_PEER_IP_SAN UPSTREAM_LOCAL_IP_SAN UPSTREAM_SERVER_NAME
  DOWNSTREAM_WIRE_BYTES_SENT DOWNSTREAM_WIRE_BYTES_RECEIVED DOWNSTREAM_HEADER_BYTES_SENT
  DOWNSTREAM_HEADER_BYTES_RECEIVED DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_REMOTE_ADDRESS
  DOWNSTREAM_REMOTE_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_PORT
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_PORT
  DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_PEER_EMAIL_SAN
  DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_PEER_OTHERNAME_SAN DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_PEER_DNS_SAN
  DOWNSTREAM_PEER_IP_SAN DOWNSTREAM_LOCAL_URI_SAN DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_IP_SAN
  DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_LOCAL_SUBJECT DOWNSTREAM_TLS_SESSION_ID DOWNSTREAM_TLS_CIPHER
  DOWNSTREAM_TLS_VERSION DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_FINGERPRINT_1
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256 DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1 DOWNSTREAM_PEER_SERIAL
  DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_CERT DOWNSTREAM_TRANSPORT_FAILURE_REASON
  DOWNSTREAM_LOCAL_CLOSE_REASON DOWNSTREAM_DETECTED_CLOSE_TYPE`;

const commands: ReadonlyMap<string, Command> = new Map([
  ...plain
    .trim()
    .split(/\s+/)
    .map((name): [string, Command] => [name, {}]),
  ...Object.entries(withArguments),
]);

/**
 * What is wrong with a value that Envoy expands: it replaces `%COMMAND(argument):length%`, reads `%%` as a percent sign,
 * and refuses the whole route table for anything else. Checked against Envoy 1.40.
 */
export function problemOfFormat(value: string): string | undefined {
  const found = /%(?:%|([A-Z0-9_]+)(?:\((.*?)\))?(:[0-9]{1,9})?%)/y;
  for (let at = value.indexOf('%'); at >= 0; at = value.indexOf('%', found.lastIndex)) {
    found.lastIndex = at;
    const match = found.exec(value);
    if (match === null) {
      return `${quote(value)} has a % that starts no Envoy command such as %REQ(x-name)%; write %% for a percent sign.`;
    }
    const [text, name, argument = '', length] = match;
    if (name === undefined) continue;
    const command = commands.get(name);
    if (command === undefined) return `${quote(text)} is no command of Envoy; write %% for a percent sign.`;
    if (!(command.argument ?? /^$/).test(argument)) {
      return argument === ''
        ? `${quote(text)} needs an argument in parentheses.`
        : `${quote(text)} has an argument that Envoy does not take there.`;
    }
    if (length !== undefined && command.length === undefined) {
      return `${quote(text)} cannot have a length; remove ${length}.`;
    }
  }
  return undefined;
}
