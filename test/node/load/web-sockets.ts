import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'undici';
import type { Client } from './load.ts';

/** Messages of a session that ends by itself, and milliseconds between them: a second in all. */
const [MESSAGES, PAUSE_MS] = [20, 50];

const LONGEST_MS = 20_000;

/** Sessions that last a second: shorter than a Pod drains, so nobody may end them but the client. */
export function shortSessions(origin: string, askers: number): Client {
  return {
    name: 'short sessions',
    askers,
    async ask(asker) {
      const session = await Session.open(origin);
      try {
        for (let number = 0; number < MESSAGES; number++) {
          if (!(await session.echo(`${asker}/${number}`))) throw new Error(`cut: ${session.end}`);
          await delay(PAUSE_MS);
        }
      } finally {
        session.close();
      }
    },
    close: () => Promise.resolve(),
  };
}

export interface LongSessions extends Client {
  /** How many messages each open session has sent and received; a new session begins at 0. */
  echoes(): readonly number[];
  /** How sessions have ended, so far: their codes. */
  readonly ends: readonly number[];
}

/**
 * Sessions that outlive any Pod: their end is not a loss. Everything that was answered was answered right and in order;
 * what had no answer when the session ended is sent again, and is lost unless the next session begins at once.
 */
export function longSessions(origin: string, askers: number): LongSessions {
  const sessions = new Map<number, Session>();
  const ends: number[] = [];
  return {
    name: 'long sessions',
    askers,
    async ask(asker) {
      const message = `${asker}`;
      const former = sessions.get(asker);
      if (former !== undefined) {
        if (await former.echo(message)) return;
        ends.push(former.code);
      }
      sessions.delete(asker);
      const next = await Session.open(origin);
      sessions.set(asker, next);
      if (!(await next.echo(message))) throw new Error(`a new session was cut: ${next.end}`);
    },
    echoes: () => [...sessions.values()].map((session) => session.echoes),
    ends,
    close() {
      for (const session of sessions.values()) session.close();
      return Promise.resolve();
    },
  };
}

class Session {
  readonly #socket: WebSocket;
  readonly #closed: Promise<unknown>;
  #answer: ((text: string | undefined) => void) | undefined;
  /** Messages sent and received. */
  echoes = 0;
  /** Of its end: RFC 6455, section 7.4; 1006 without a closing frame. 0 while it is open. */
  code = 0;
  end = '';

  constructor(socket: WebSocket) {
    this.#socket = socket;
    this.#closed = once(socket, 'close');
    socket.addEventListener('message', ({ data }) => this.#answer?.(String(data)));
    // `close` follows.
    socket.addEventListener('error', () => {});
    socket.addEventListener('close', ({ code, reason }) => {
      this.code = code;
      this.end = `${code} ${reason}`.trim();
      this.#answer?.(undefined);
    });
  }

  /** Throws if it does not begin. */
  static async open(origin: string): Promise<Session> {
    const socket = new WebSocket(`${origin.replace(/^http/, 'ws')}/echo`);
    const session = new Session(socket);
    await Promise.race([once(socket, 'open'), session.#closed, delay(LONGEST_MS, undefined, { ref: false })]);
    if (socket.readyState !== WebSocket.OPEN) throw new Error(`a session does not begin: ${session.end}`);
    return session;
  }

  /** Sends a message and waits for it; false if the session has ended without. Throws if another one comes. */
  async echo(text: string): Promise<boolean> {
    if (this.#socket.readyState !== WebSocket.OPEN) {
      await this.#closed;
      return false;
    }
    const message = `${text} ${this.echoes}`;
    const answer = await new Promise<string | undefined>((resolve, reject) => {
      const patience = setTimeout(() => reject(new Error(`no answer to ${message}`)), LONGEST_MS);
      this.#answer = (received) => {
        clearTimeout(patience);
        resolve(received);
      };
      this.#socket.send(message);
    });
    if (answer === undefined) return false;
    if (answer !== message) throw new Error(`${answer} instead of ${message}`);
    this.echoes++;
    return true;
  }

  close(): void {
    this.#socket.close();
  }
}
