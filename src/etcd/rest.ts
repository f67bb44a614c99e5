import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import type { Clock } from '../base/clock.ts';

/** Times what taking a message took, for which no other is taken. */
const SHARE = 3;

/**
 * Lets what a connection's streams bring take a quarter of the time, at most: whoever sends changes without end must not
 * keep this process from everything else. One message of each stream waits here; gRPC does not read on meanwhile.
 */
export class Rest {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #isResting = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For the calls of one connection. */
  get interceptor(): Interceptor {
    return (options, nextCall) =>
      new InterceptingCall(nextCall(options), {
        start: (metadata, _, next) =>
          next(metadata, { onReceiveMessage: (message, pass) => this.#take(() => pass(message)) }),
      });
  }

  #take(pass: () => void): void {
    if (this.#isResting) this.#waiting.push(pass);
    else this.#pass(pass);
  }

  #pass(pass: () => void): void {
    const began = this.#clock.now();
    // What passing this one brings waits, too.
    this.#isResting = true;
    pass();
    const took = this.#clock.now() - began;
    const next = (): void => {
      this.#isResting = false;
      const waiting = this.#waiting.shift();
      if (waiting !== undefined) this.#pass(waiting);
    };
    if (took >= 1) this.#clock.after(SHARE * took, next);
    else next();
  }
}
