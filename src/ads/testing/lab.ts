import type { MemberChange } from '../store/publication.ts';
import { type Asked, decodeFrame, encodeRequest, resource, type Response, TestServer } from './world.ts';

export type Item = readonly [typeUrl: string, name: string, content: string | undefined, clusters?: readonly string[]];

/** One stream and its world, driven by hand. */
export class Lab {
  readonly server = new TestServer();
  readonly #delta: boolean;
  readonly delivery;
  now = 0;

  constructor(delta: boolean, server: Partial<Pick<TestServer, 'canaries' | 'tenant'>> = {}) {
    this.#delta = delta;
    Object.assign(this.server, server);
    this.delivery = this.server.open(this.server.store.enter({ roots: ['mesh'], qualifiers: [] }), delta);
  }

  publish(...items: readonly Item[]): void {
    const members = items.map(([typeUrl, name, content, clusters]): MemberChange => ({
      list: 'mesh',
      typeUrl,
      name,
      qualifier: '',
      ...(content === undefined ? {} : { resource: resource(typeUrl, name, content, clusters) }),
    }));
    this.server.store.apply({ members, lists: [] });
    this.server.frames.outdate();
  }

  ask(asked: Asked): void {
    this.delivery.request(encodeRequest(asked, this.#delta, this.server.hasher), this.now);
  }

  next(): Response | undefined {
    const frame = this.delivery.next(this.now);
    return frame === undefined ? undefined : decodeFrame(frame.slices, this.#delta);
  }

  /** The resources of the next response, `name@content`. */
  sent(): string[] | undefined {
    const response = this.next();
    return response && [...response.resources].map(([name, content]) => `${name}@${content}`);
  }

  /** The names in the next response, sorted. */
  sentNames(): string[] {
    return [...this.next()!.resources.keys()].sort();
  }

  /** Asks, and accepts what comes. */
  take(asked: Asked): void {
    this.ask(asked);
    const { nonce, version } = this.next()!;
    this.ask({ ...asked, nonce, version, ...(this.#delta ? { names: [], initial: new Map() } : {}) });
  }

  /** Takes whatever comes for this many seconds, tick by tick; answers nothing for a silent type. */
  pass(seconds: number, names: Readonly<Record<string, readonly string[]>> = {}, silent?: string): string[] {
    const log: string[] = [];
    for (let i = 0; i < seconds; i++) {
      this.now += 1_000;
      this.delivery.tick(this.now);
      for (let response = this.next(); response !== undefined; response = this.next()) {
        const { typeUrl, nonce, version, resources, removed } = response;
        log.push(
          ...[...resources].map(([name, content]) => `${this.now / 1000}s ${typeUrl} ${name}@${content}`),
          ...removed.map((name) => `${this.now / 1000}s ${typeUrl} -${name}`),
        );
        if (typeUrl !== silent) this.ask({ typeUrl, nonce, version, names: names[typeUrl] ?? [] });
      }
    }
    return log;
  }
}
