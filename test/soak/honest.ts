import { nodeField } from '../harness/raw-ads.ts';
import { AdsStream, CDS, EDS, encode, LDS, RDS } from './ads-stream.ts';

/** A proxy that asks for what Envoy asks for, takes all of it, and comes back a moment after it was sent away. */
export class Honest {
  readonly #port: number;
  readonly #from: string;
  readonly #id: string;
  #stream: AdsStream | undefined;
  #stopped = false;
  /** The newest table of port 80. */
  #table: Buffer | undefined;
  reconnects = -1;

  constructor(port: number, index: number) {
    this.#port = port;
    this.#from = `127.0.1.${1 + (index % 10)}`;
    this.#id = `sidecar~10.7.${index >> 8}.${index & 255}~client-${index}.shop~shop.svc.cluster.local`;
    this.#connect();
  }

  /** Its table says so. */
  has(text: string): boolean {
    return this.#table?.includes(text) === true;
  }

  stop(): void {
    this.#stopped = true;
    this.#stream?.close();
  }

  #connect(): void {
    if (this.#stopped) return;
    this.reconnects++;
    let first = true;
    const stream = new AdsStream(
      this.#port,
      this.#from,
      ({ typeUrl, nonce, resources }) => {
        stream.send(encode({ typeUrl, nonce }));
        const table = resources.get('80');
        if (typeUrl === RDS && table !== undefined) this.#table = table;
        if (typeUrl !== CDS || !first) return;
        first = false;
        stream.send(
          encode({ typeUrl: EDS, names: [...resources.keys()].filter((name) => name.startsWith('outbound')) }),
        );
        stream.send(encode({ typeUrl: LDS }));
        stream.send(encode({ typeUrl: RDS, names: ['80'] }));
      },
      () => setTimeout(() => this.#connect(), 200),
    );
    this.#stream = stream;
    stream.send(nodeField(this.#id), encode({ typeUrl: CDS }));
  }
}
