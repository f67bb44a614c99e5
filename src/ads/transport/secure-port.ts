import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { type TLSSocket, createServer } from 'node:tls';
import { Headcount } from './headcount.ts';
import { plainAddress } from './address.ts';

/** What the port presents, and which clients it trusts. PEM. */
export interface PortCertificate {
  readonly certificate: string;
  readonly key: string;
  /** The authorities whose client certificates are accepted. */
  readonly roots: string;
}

/** What a client has proven in the handshake. */
export type ClientCertificate =
  | { readonly kind: 'none' }
  /** Names as in the certificate: `URI:spiffe://…`; and the units (OU) of its subject. */
  | { readonly kind: 'valid'; readonly names: readonly string[]; readonly units: readonly string[] }
  | { readonly kind: 'invalid'; readonly problem: string };

export interface SecurePortOptions {
  /** A client has finished its handshake. */
  connected(socket: Socket): void;
  /** A handshake failed, or took too long, or too many are under way. */
  failed(address: string): void;
}

/** A handshake takes two round trips. */
const HANDSHAKE_MS = 10_000;
/** Each unfinished handshake holds tens of kilobytes. */
const MOST_HANDSHAKES = 1_000;
/** An address with more than this has to make room when all are taken. Proxies have one or two. */
const MANY_OF_ADDRESS = 50;

/** Turns connections into TLS connections. Never closes one when the certificate changes. */
export class SecurePort {
  readonly #options: SecurePortOptions;
  readonly #handshakes = new Headcount(MOST_HANDSHAKES);
  /** Unfinished handshakes by remote address and port, the oldest first. */
  readonly #underWay = new Map<string, { readonly address: string; readonly socket: Socket }>();
  /** What the others have proven. */
  readonly #clients = new Map<string, ClientCertificate>();
  readonly #server = createServer({
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['h2'],
    requestCert: true,
    // A client without a certificate may have a token; who has a bad one is told so in the answer to its call.
    rejectUnauthorized: false,
    handshakeTimeout: HANDSHAKE_MS,
    // A resumed session would outlive the authority that its certificate was checked against.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  });
  #hasCertificate = false;

  constructor(options: SecurePortOptions) {
    this.#options = options;
    this.#server.on('secureConnection', (socket: TLSSocket) => this.#secured(socket));
    this.#server.on('tlsClientError', (_, socket: TLSSocket) => {
      options.failed(plainAddress(socket.remoteAddress ?? ''));
      socket.destroy();
    });
  }

  /** For connections from now on. Throws if the parts do not fit each other. */
  present({ certificate, key, roots }: PortCertificate): void {
    this.#server.setSecureContext({ cert: certificate, key, ca: roots });
    this.#hasCertificate = true;
  }

  accept(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? '');
    const peer = peerOf(socket);
    // Behind an address translator, two clients can have the same address and port if they connect to different ones.
    const isTaken = this.#underWay.has(peer) || this.#clients.has(peer);
    if (address === '' || isTaken || !this.#hasCertificate || !this.#enter(address)) {
      this.#options.failed(address);
      socket.destroy();
      return;
    }
    this.#underWay.set(peer, { address, socket });
    socket.once('close', () => {
      this.#finished(peer);
      this.#clients.delete(peer);
    });
    this.#server.emit('connection', socket);
  }

  /** @param peer as grpc-js names it: `10.0.0.7:40112`. */
  clientOf(peer: string): ClientCertificate {
    return this.#clients.get(peer) ?? { kind: 'invalid', problem: 'the connection is closed' };
  }

  /** Whoever holds many handshakes open does not keep others out. */
  #enter(address: string): boolean {
    const problem = this.#handshakes.enter(address);
    if (problem !== 'full') return problem === undefined;
    const largest = this.#handshakes.largest(MANY_OF_ADDRESS);
    for (const [peer, { address: other, socket }] of this.#underWay) {
      if (other !== largest) continue;
      this.#finished(peer);
      // This is told as a handshake that failed.
      socket.destroy();
      return this.#handshakes.enter(address) === undefined;
    }
    return false;
  }

  #secured(socket: TLSSocket): void {
    const peer = peerOf(socket);
    // The connection may have gone meanwhile.
    if (!this.#finished(peer) || socket.alpnProtocol !== 'h2') {
      this.#options.failed(plainAddress(socket.remoteAddress ?? ''));
      socket.destroy();
      return;
    }
    this.#clients.set(peer, certificateOf(socket));
    this.#options.connected(socket);
  }

  /** Whether a handshake with this client was under way. */
  #finished(peer: string): boolean {
    const underWay = this.#underWay.get(peer);
    if (underWay === undefined) return false;
    this.#underWay.delete(peer);
    this.#handshakes.leave(underWay.address);
    return true;
  }
}

const peerOf = ({ remoteAddress = '', remotePort = 0 }: Socket): string => `${remoteAddress}:${remotePort}`;

function certificateOf(socket: TLSSocket): ClientCertificate {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return { kind: 'none' };
  if (!socket.authorized) return { kind: 'invalid', problem: String(socket.authorizationError) };
  // Several are a list.
  const { OU: units = [] } = certificate.toLegacyObject().subject as { readonly OU?: string | readonly string[] };
  // Node escapes commas that are part of a name.
  return { kind: 'valid', names: certificate.subjectAltName?.split(', ') ?? [], units: [units].flat() };
}
