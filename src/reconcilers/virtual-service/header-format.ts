import { quote } from '../../api/quote.ts';

export interface FormatProblem {
  /** `Ineffective`: only some versions of Envoy know the command. */
  readonly reason: 'Invalid' | 'Ineffective';
  readonly message: string;
}

interface Command {
  /** What is allowed between the parentheses; absent: nothing. */
  readonly argument?: RegExp;
  /** A length such as `:10` may follow, which truncates the value. */
  readonly length?: true;
}

type Commands = Readonly<Record<string, Command>>;

const anything = /^[^]*$/;
const something = /[^]/;
/** `name` or `name?other`. A name may be empty, but not a lone colon. */
const header = {
  argument: /^(?=.)(:(?=[^?]))?[!#$%&'*+.^_`|~0-9A-Za-z-]*(\?(:(?=.))?[!#$%&'*+.^_`|~0-9A-Za-z-]*)?$/,
  length: true,
} as const;
/** `strftime`, without line breaks. */
const time = { argument: /^([^%\n]|%(?!n)|%$)*$/ };
const state = { argument: /^[^:]+(:(PLAIN|TYPED|FIELD:[^]+))?$/, length: true } as const;

/** Commands that take arguments, as Envoy 1.36 reads them. */
const withArguments: Commands = {
  REQ: header,
  RESP: header,
  TRAILER: header,
  DYNAMIC_METADATA: { argument: something },
  CLUSTER_METADATA: { argument: something },
  UPSTREAM_METADATA: { argument: something },
  METADATA: { argument: /^(DYNAMIC|CLUSTER|ROUTE|UPSTREAM_HOST|LISTENER|VIRTUAL_HOST)(:.*)?$/, length: true },
  FILTER_STATE: state,
  UPSTREAM_FILTER_STATE: state,
  ENVIRONMENT: { argument: something, length: true },
  QUERY_PARAM: { argument: something, length: true },
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
  RESPONSE_CODE_DETAILS: { argument: anything },
};

/** Commands without arguments, in Envoy 1.36. */
const plain = `
  REQUEST_HEADERS_BYTES RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES BYTES_RECEIVED BYTES_SENT BYTES_RETRANSMITTED
  PACKETS_RETRANSMITTED PROTOCOL RESPONSE_CODE CONNECTION_TERMINATION_DETAILS DURATION REQUEST_DURATION
  REQUEST_TX_DURATION RESPONSE_DURATION RESPONSE_TX_DURATION ROUNDTRIP_DURATION CUSTOM_FLAGS RESPONSE_FLAGS
  RESPONSE_FLAGS_LONG CONNECTION_ID ROUTE_NAME HOSTNAME FILTER_CHAIN_NAME VIRTUAL_CLUSTER_NAME TLS_JA3_FINGERPRINT
  TLS_JA4_FINGERPRINT UNIQUE_ID STREAM_ID GRPC_STATUS_NUMBER LOCAL_REPLY_BODY ACCESS_LOG_TYPE TRACE_ID
  REQUESTED_SERVER_NAME UPSTREAM_PROTOCOL UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_WIRE_BYTES_SENT
  UPSTREAM_WIRE_BYTES_RECEIVED UPSTREAM_HEADER_BYTES_SENT UPSTREAM_HEADER_BYTES_RECEIVED
  UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED UPSTREAM_HOST_NAME
  UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_HOST UPSTREAM_CONNECTION_ID UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW
  UPSTREAM_LOCAL_ADDRESS UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT UPSTREAM_LOCAL_PORT UPSTREAM_REMOTE_ADDRESS
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT UPSTREAM_REMOTE_PORT UPSTREAM_TRANSPORT_FAILURE_REASON
  UPSTREAM_CONNECTION_POOL_READY_DURATION UPSTREAM_TLS_SESSION_ID UPSTREAM_TLS_CIPHER UPSTREAM_TLS_VERSION
  UPSTREAM_PEER_ISSUER UPSTREAM_PEER_CERT UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN UPSTREAM_LOCAL_URI_SAN
  UPSTREAM_PEER_DNS_SAN UPSTREAM_LOCAL_DNS_SAN UPSTREAM_PEER_IP_SAN UPSTREAM_LOCAL_IP_SAN DOWNSTREAM_WIRE_BYTES_SENT
  DOWNSTREAM_WIRE_BYTES_RECEIVED DOWNSTREAM_HEADER_BYTES_SENT DOWNSTREAM_HEADER_BYTES_RECEIVED
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED
  DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_REMOTE_ADDRESS DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT
  DOWNSTREAM_REMOTE_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT
  DOWNSTREAM_DIRECT_REMOTE_PORT DOWNSTREAM_DIRECT_LOCAL_ADDRESS DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT
  DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_LOCAL_PORT
  DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_PEER_EMAIL_SAN DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_PEER_OTHERNAME_SAN
  DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_PEER_DNS_SAN DOWNSTREAM_PEER_IP_SAN DOWNSTREAM_LOCAL_URI_SAN
  DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_IP_SAN DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_LOCAL_SUBJECT
  DOWNSTREAM_TLS_SESSION_ID DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_VERSION DOWNSTREAM_PEER_FINGERPRINT_256
  DOWNSTREAM_PEER_FINGERPRINT_1 DOWNSTREAM_PEER_SERIAL DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1 DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_CERT
  DOWNSTREAM_TRANSPORT_FAILURE_REASON`;

/** What Envoy 1.40 also accepts. Older versions reject a table or listener that contains it. */
const newer: Commands = {
  REQUEST_HEADER: header,
  RESPONSE_HEADER: header,
  RESPONSE_TRAILER: header,
  QUERY_PARAMS: { argument: /^(ORIG|DECODED)?$/, length: true },
  DYNAMIC_METADATA: { argument: something, length: true },
  REQUESTED_SERVER_NAME: { argument: /^(SNI_ONLY|SNI_FIRST|HOST_FIRST)?$/ },
  UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: { argument: anything },
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: { argument: anything },
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: { argument: anything },
  DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT: { argument: anything },
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT: { argument: anything },
  DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: { argument: anything },
  ...standingAlone(`
    SPAN_ID UPSTREAM_SERVER_NAME UPSTREAM_LOCAL_CLOSE_REASON UPSTREAM_DETECTED_CLOSE_TYPE UPSTREAM_HOSTS_ATTEMPTED
    UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAMES_ATTEMPTED UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT
    UPSTREAM_CONNECTION_IDS_ATTEMPTED UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID UPSTREAM_TLS_GROUP
    DOWNSTREAM_LOCAL_CLOSE_REASON DOWNSTREAM_DETECTED_CLOSE_TYPE DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID
    DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID DOWNSTREAM_CX_RTT DOWNSTREAM_TLS_GROUP
    DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256 DOWNSTREAM_PEER_ISSUER_SERIAL LISTENER_NAME ROUTE_RESOLUTION_COUNT`),
};

const inAll: ReadonlyMap<string, Command> = new Map(Object.entries({ ...standingAlone(plain), ...withArguments }));
const inNewest: ReadonlyMap<string, Command> = new Map([...inAll, ...Object.entries(newer)]);

/** Commands that nobody may use, and why. */
const barred: ReadonlyMap<string, string> = new Map([
  ['CEL', 'an invalid expression makes Envoy reject the routes of everyone'],
  ['TYPED_CEL', 'an invalid expression makes Envoy reject the routes of everyone'],
  ['COALESCE', 'some of its arguments crash Envoy'],
]);

/**
 * What is wrong with a value that Envoy expands: it replaces `%COMMAND(argument):length%`, reads `%%` as a percent
 * sign, and rejects the whole route table for anything else. The root namespace may read the proxy's environment, and
 * may use what only the newest Envoy knows. All others may use only what Envoy 1.36 to 1.40 all accept.
 */
export function problemOfFormat(value: string, byRoot: boolean): FormatProblem | undefined {
  const found = /%(?:%|([A-Z0-9_]+)(?:\((.*?)\))?(:[0-9]{1,9})?%)/y;
  let remark: FormatProblem | undefined;
  for (let at = value.indexOf('%'); at >= 0; at = value.indexOf('%', found.lastIndex)) {
    found.lastIndex = at;
    const match = found.exec(value);
    if (match === null) {
      return invalid(
        `${quote(value)} has a % that does not start an Envoy command such as %REQ(x-name)%; write %% for a percent sign.`,
      );
    }
    const [text, name, argument = '', length] = match;
    if (name === undefined) continue;
    const problem = problemOfCommand({ text, name, argument, length }, byRoot);
    if (problem?.reason === 'Invalid') return problem;
    remark ??= problem;
  }
  return remark;
}

interface Written {
  readonly text: string;
  readonly name: string;
  readonly argument: string;
  readonly length: string | undefined;
}

function problemOfCommand(written: Written, byRoot: boolean): FormatProblem | undefined {
  const { text, name } = written;
  const reason = barred.get(name);
  if (reason !== undefined) return invalid(`${quote(text)} cannot be used: ${reason}. Remove it.`);
  if (name === 'ENVIRONMENT' && !byRoot)
    return invalid(`${quote(text)} exposes the proxy's environment, which only the root namespace may do; remove it.`);
  const newest = inNewest.get(name);
  if (newest === undefined) {
    return ineffective(`${quote(text)} is not a command that Fairlead knows; write %% for a percent sign.`);
  }
  const misuse = misuseOf(newest, written);
  if (misuse !== undefined) return invalid(misuse);
  const old = inAll.get(name);
  if (byRoot || (old !== undefined && misuseOf(old, written) === undefined)) return undefined;
  return ineffective(`${quote(text)} works only in the newest Envoys, and others would reject it; remove it.`);
}

function misuseOf(command: Command, { text, argument, length }: Written): string | undefined {
  if (!(command.argument ?? /^$/).test(argument)) {
    return argument === ''
      ? `${quote(text)} needs an argument in parentheses.`
      : `${quote(text)} has an argument that Envoy does not accept there.`;
  }
  if (length !== undefined && command.length === undefined) {
    return `${quote(text)} cannot have a length; remove ${length}.`;
  }
  return undefined;
}

function standingAlone(names: string): Commands {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, {}]),
  );
}

function invalid(message: string): FormatProblem {
  return { reason: 'Invalid', message };
}

function ineffective(message: string): FormatProblem {
  return { reason: 'Ineffective', message };
}
