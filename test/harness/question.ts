import { Client, Metadata, type ServiceError, credentials, status as Status } from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import type { Any } from '../../src/envoy/gen/types.gen.ts';
import type { SecureCall } from '../conformance/xds-client.ts';
import { testProtos } from './mesh.ts';

export interface Reply {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly controlPlane: string | undefined;
  readonly resources: readonly Any[];
}

/** A stream on which Istio's tools ask: each request gets one response, or the stream ends with a text. */
export class QuestionStream {
  readonly #delta: boolean;
  readonly #call;
  readonly #events: (Reply | string)[] = [];
  #wake = (): void => undefined;

  constructor(port: number, delta: boolean, secure?: SecureCall) {
    this.#delta = delta;
    const client = new Client(`127.0.0.1:${port}`, secure?.credentials ?? credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
      'grpc.use_local_subchannel_pool': 1,
      ...(secure && { 'grpc.ssl_target_name_override': secure.name }),
    });
    const protos = testProtos();
    const method = delta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources';
    this.#call = client.makeBidiStreamRequest(
      `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`,
      (bytes: Buffer) => bytes,
      (bytes: Buffer): Reply => {
        const {
          typeUrl = '',
          nonce = '',
          controlPlane,
          resources = [],
        } = delta
          ? protos.decode('envoy.service.discovery.v3.DeltaDiscoveryResponse', bytes)
          : protos.decode('envoy.service.discovery.v3.DiscoveryResponse', bytes);
        const messages = resources.map((each) => ('resource' in each ? each.resource! : each) as Any);
        return { typeUrl, nonce, controlPlane: controlPlane?.identifier, resources: messages };
      },
      secure?.metadata ?? new Metadata(),
    );
    this.#call.on('data', (reply: Reply) => this.#happened(reply));
    this.#call.on('error', ({ code, details }: ServiceError) => this.#happened(`${Status[code]}: ${details}`));
    onTestFinished(() => {
      this.#call.cancel();
      client.close();
    });
  }

  /** As Istio's tools send it: the node is nobody's, and the nonce is a time. */
  send(typeUrl: string, names: readonly string[], nonce = '2026-01-02 03:04:05 +0000 UTC m=+0.1'): void {
    const node = { id: 'sidecar~10.0.0.9~test-1.default~default.svc.cluster.local' };
    const asked = this.#delta
      ? testProtos().encode('envoy.service.discovery.v3.DeltaDiscoveryRequest', {
          node,
          typeUrl,
          resourceNamesSubscribe: names,
          responseNonce: nonce,
        })
      : testProtos().encode('envoy.service.discovery.v3.DiscoveryRequest', {
          node,
          typeUrl,
          resourceNames: names,
          responseNonce: nonce,
        });
    this.#call.write(Buffer.from(asked));
  }

  async next(): Promise<Reply | string> {
    while (this.#events.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#events.shift()!;
  }

  /** The answer; fails if there is none. */
  async ask(typeUrl: string, ...names: readonly string[]): Promise<Reply> {
    this.send(typeUrl, names);
    const reply = await this.next();
    if (typeof reply === 'string') throw new Error(reply);
    return reply;
  }

  #happened(event: Reply | string): void {
    this.#events.push(event);
    this.#wake();
  }
}
