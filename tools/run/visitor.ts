import type { Page } from './bookshop.ts';
import { type Answer, type Ask, HttpClient } from './http.ts';
import type { Ports } from './ports.ts';

/** A client that sends requests, from outside and from the storefront's side. */
export class Visitor {
  readonly #client = new HttpClient();
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** Through the ingress gateway. */
  fromOutside(path: string, ask: Ask = {}): Promise<Answer> {
    return this.#client.get(`http://localhost:${this.#ports.gateway}${path}`, ask);
  }

  /** Through the sidecar of the storefront. */
  fromStorefront(url: string, ask: Ask = {}): Promise<Answer> {
    return this.#client.get(url, { ...ask, proxy: this.#ports.proxy });
  }

  /** The shop's page; rejects if there is none. */
  async page(ask: Ask = {}): Promise<Page> {
    const { status, body } = await this.fromOutside('/', ask);
    if (status !== 200) throw new Error(`the shop answers ${status}: ${body}`);
    return JSON.parse(body) as Page;
  }

  leave(): void {
    this.#client.close();
  }
}
