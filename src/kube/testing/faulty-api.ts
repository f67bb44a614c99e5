import { ApiError } from '../client/api-error.ts';
import type { CallOptions, KubeApi } from '../client/client.ts';
import type { Clock } from '../../base/clock.ts';

/** What happens to one client's requests in transit. `lost`: carried out, but the response never arrives. */
export type Fault = 'none' | 'refused' | 'hanging' | 'lost' | { readonly late: number };

/** One client's connection to the API server. */
export class FaultyApi implements KubeApi {
  fault: Fault = 'none';
  requests = 0;
  private readonly api: KubeApi;
  private readonly clock: Clock;

  constructor(api: KubeApi, clock: Clock) {
    this.api = api;
    this.clock = clock;
  }

  get(path: string, options: CallOptions): Promise<unknown> {
    return this.through(options, (call) => this.api.get(path, call));
  }
  post(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.through(options, (call) => this.api.post(path, body, call));
  }
  put(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.through(options, (call) => this.api.put(path, body, call));
  }
  patch(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.through(options, (call) => this.api.patch(path, body, call));
  }
  remove(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.through(options, (call) => this.api.remove(path, body, call));
  }
  stream(path: string, options: CallOptions): Promise<AsyncIterable<Uint8Array>> {
    return this.api.stream(path, options);
  }

  private async through<T>({ signal, query }: CallOptions, send: (call: CallOptions) => Promise<T>): Promise<T> {
    const { fault } = this;
    this.requests++;
    signal.throwIfAborted();
    if (fault === 'refused') throw new ApiError('refused', { code: 0, reason: 'ECONNREFUSED', retryable: true });
    // The server carries on after the client has given up.
    const call = { signal: new AbortController().signal, ...(query === undefined ? {} : { query }) };
    const gone = new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason as Error)),
    );
    if (fault === 'none') return Promise.race([send(call), gone]);
    if (fault === 'hanging') return gone;
    if (fault === 'lost') {
      await send(call).catch(() => undefined);
      return gone;
    }
    const answer = new Promise<T>((resolve, reject) => {
      this.clock.after(fault.late, () => void send(call).then(resolve, reject));
    });
    answer.catch(() => undefined);
    return Promise.race([answer, gone]);
  }
}
