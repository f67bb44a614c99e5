/** Commands of every kind: with arguments, without, new, barred, unknown. `COALESCE` is left out: see the list of those barred. */
const names = `
  REQ RESP TRAILER REQUEST_HEADER RESPONSE_TRAILER DYNAMIC_METADATA CLUSTER_METADATA UPSTREAM_METADATA METADATA
  FILTER_STATE UPSTREAM_FILTER_STATE ENVIRONMENT CEL TYPED_CEL QUERY_PARAM QUERY_PARAMS PATH COMMON_DURATION START_TIME
  EMIT_TIME_LOCAL DOWNSTREAM_PEER_CERT_V_START UPSTREAM_PEER_CERT_V_END GRPC_STATUS REQUESTED_SERVER_NAME
  RESPONSE_CODE_DETAILS UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT PROTOCOL RESPONSE_CODE
  HOSTNAME SPAN_ID LISTENER_NAME ROUTE_NAME TLS_JA4_FINGERPRINT PER_REQUEST_STATE XFCC_VALUE STREAM_INFO_REQ FILE_CONTENT
  SECRET FOO _ 0 req`;

const parts = [
  ...[
    '',
    '()',
    '(:)',
    '(a)',
    '(A)',
    '(:a)',
    '(a:)',
    '(a:b)',
    '(a:b:c)',
    '(::)',
    '(?)',
    '(a?)',
    '(?a)',
    '(a?b)',
    '(a?b?c)',
  ],
  ...[
    '(:a?:b)',
    '(:?a)',
    '(a?:)',
    '(a b)',
    '( )',
    '(a)b)',
    '((a)',
    '(a',
    'a)',
    '("a")',
    '(["a","b"])',
    '([)',
    '(0)',
    '(24)',
  ],
  ...[
    '(129)',
    '(-1)',
    '(a:PLAIN)',
    '(a:TYPED)',
    '(a:FIELD)',
    '(a:FIELD:)',
    '(a:FIELD:b)',
    '(a:FIELD:b:c)',
    '(a:PLAIN:b)',
  ],
  ...[
    '(:PLAIN)',
    '(ROUTE)',
    '(ROUTE:a)',
    '(ROUTE:)',
    '(ROUTE_X)',
    '(LISTENER_FILTER_CHAIN:a)',
    '(DYNAMIC:a:b)',
    '(ORIG)',
  ],
  ...[
    '(DECODED)',
    '(WQ)',
    '(NQ:PATH)',
    '(WQ:)',
    '(:ORIG)',
    '(WQ:ORIG:x)',
    '(X)',
    '(DS_RX_BEG:DS_RX_END:ms)',
    '(A:B:s)',
  ],
  ...[
    '(DS_RX_BEG:DS_RX_END:ms:x)',
    '(%s.%3f)',
    '(%n)',
    '(%Y-%m-%d)',
    '(%)',
    '(%%)',
    '(%q)',
    '(\u00e9)',
    '(a\tb)',
    '(NUMBER)',
  ],
  ...[
    '(SNI_FIRST)',
    '(SNI_FIRST:ORIG)',
    '(1 +)',
    '(request.path)',
    ':0',
    ':10',
    '(a):0',
    '(a):10',
    '(a):-1',
    '(a):',
    '(a):b',
  ],
  ...[
    '(a):999999999',
    '(a):99999999999999999999',
    '(a):1:2',
    '(:):10',
    '(a:FIELD):10',
    '(a)(b)',
    '%',
    '(a)%%',
    '()%(a)',
  ],
];

const whole = [
  '%',
  '%%',
  '%%%',
  '%%%%',
  '50%',
  '%a',
  'a%',
  '% REQ(a)%',
  '%REQ(a)%%REQ(b)%%%',
  '%REQ(a)%x%RESP(b)%',
  '%PROTOCOL%(a)%',
];

/** Some thousand values that look as if Envoy might expand them. */
export function oddFormats(): readonly string[] {
  return [...whole, ...names.trim().split(/\s+/).flatMap(oddFormatsOf)];
}

/** A command in all ways in which it might be written. */
export function oddFormatsOf(command: string): readonly string[] {
  return parts.map((part) => `%${command}${part}%`);
}
