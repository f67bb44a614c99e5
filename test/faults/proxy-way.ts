import { createServer, type AddressInfo, type Socket } from 'node:net';
import { connect } from 'node:tls';
import type { WorkloadCertificate } from '../peers/mesh-ca.ts';
import { Localized } from './localized.ts';

/**
 * A proxy's way to the control plane: to the secure port of the first replica that accepts it. Like an agent it has the
 * certificate, and speaks plaintext with the Envoy beside it. On it, Pods have local addresses.
 */
export class ProxyWay {
  readonly #server;
  readonly #certificate: WorkloadCertificate;
  readonly #sockets = new Set<Socket>();
  #ports: readonly number[] = [];

  private constructor(certificate: WorkloadCertificate) {
    this.#certificate = certificate;
    this.#server = createServer((client) => this.#attempt(client, this.#ports));
  }

  static async open(certificate: WorkloadCertificate): Promise<ProxyWay> {
    const way = new ProxyWay(certificate);
    await new Promise<void>((resolve) => way.#server.listen(0, '127.0.0.1', resolve));
    return way;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Of replicas, the preferred one first. Connections that exist stay. */
  lead(...ports: readonly number[]): void {
    this.#ports = ports;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #attempt(client: Socket, [port, ...others]: readonly number[]): void {
    if (port === undefined) return void client.destroy();
    const { certificate: cert, key, roots: ca, name: servername } = this.#certificate;
    const upstream = connect({ port, host: '127.0.0.1', cert, key, ca, servername, ALPNProtocols: ['h2'] });
    const refused = (): void => this.#attempt(client, others);
    upstream.once('error', refused).once('secureConnect', () => {
      upstream.off('error', refused);
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket
          .on('error', () => {})
          .on('close', () => {
            this.#sockets.delete(socket);
            client.destroy();
            upstream.destroy();
          });
      }
      client.pipe(upstream);
      const localized = new Localized();
      upstream.on('data', (piece: Buffer) => void (client.destroyed || client.write(localized.push(piece))));
    });
  }
}
