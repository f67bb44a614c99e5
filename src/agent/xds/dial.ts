import { Client, type ClientOptions, Metadata, credentials } from '@grpc/grpc-js';

/** How an agent reaches the control plane, and proves who it is. Files are read for each connection: they change. */
export interface ControlPlaneOptions {
  /** `host:port`. */
  readonly address: string;
  /** The name that its certificate must have, if it is not the host of the address. */
  readonly name?: string;
  /** Undefined: without TLS, as with `controlPlaneAuthPolicy: NONE`. */
  readonly tls?: {
    /** PEM; undefined: those of the system. A text says what is missing. */
    readonly roots: () => string | undefined;
    /** The client certificate, PEM. */
    readonly certificate: () => { readonly chain: string; readonly key: string } | undefined;
  };
  /** Sent only with TLS. Undefined: there is none. */
  readonly token: () => string | undefined;
  /** Sent with each call: `clusterid`, and what the user adds. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A connection of its own. Close the client. */
export interface Dialed {
  readonly client: Client;
  readonly metadata: Metadata;
}

/** A finer error than gRPC would report: what to do about it is in the message. */
export class NotDialed extends Error {}

const channelOptions: ClientOptions = {
  // A connection for each stream, so that a change of files is in force with the next.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  // Back-off is Envoy's or the caller's.
  'grpc.enable_retries': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
};

/** Throws {@link NotDialed}; connects with the first call. */
export function dial({ address, name, tls, token, headers }: ControlPlaneOptions): Dialed {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(headers)) metadata.set(key.toLowerCase(), value);
  // Whoever reads a token on the way has it, and with it the workload's identity.
  if (tls === undefined) return { client: new Client(address, credentials.createInsecure(), channelOptions), metadata };
  const bearer = token();
  if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);
  const [roots, certificate] = [tls.roots(), tls.certificate()];
  if (bearer === undefined && certificate === undefined)
    throw new NotDialed('there is neither a token nor a certificate to prove who this workload is');
  const channel = credentials.createSsl(
    roots === undefined ? null : Buffer.from(roots),
    certificate === undefined ? null : Buffer.from(certificate.key),
    certificate === undefined ? null : Buffer.from(certificate.chain),
  );
  const options = name === undefined ? {} : { 'grpc.ssl_target_name_override': name, 'grpc.default_authority': name };
  return { client: new Client(address, channel, { ...channelOptions, ...options }), metadata };
}

/** For calls whose messages are bytes. */
export const bytes = (value: Buffer): Buffer => value;
