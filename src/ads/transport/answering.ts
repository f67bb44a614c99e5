import type { FrameWriter } from './frame-writer.ts';
import type { Frame } from '../wire/frames.ts';
import { type FairSemaphore, Permit } from '../../base/fair-semaphore.ts';
import type { Answer, Denial, PeerIdentity, Questions } from '../types.ts';
import type { DiscoveryRequest } from '../wire/wire-read.ts';

/** What answering needs of the server. */
export interface AnsweringHost {
  readonly questions: Questions | undefined;
  /** Answers that are made or sent at one time. */
  readonly answering: FairSemaphore;
  frameOf(typeUrl: string, answer: Answer): Frame;
}

/** What becomes of a question: it has its answer, or its stream ends. */
export interface AnsweringEvents {
  answered(): void;
  denied(denial: Denial): void;
  failed(error: unknown): void;
}

/** Answers the questions of one stream, one at a time. */
export class Answering {
  readonly #host: AnsweringHost;
  readonly #writer: FrameWriter;
  readonly #events: AnsweringEvents;
  readonly #place: Permit;
  /** Of the answer that is being made. Few streams ask for any. */
  #end: AbortController | undefined;
  #closed = false;
  #lastNonce = '';

  constructor(host: AnsweringHost, writer: FrameWriter, address: string, events: AnsweringEvents) {
    this.#host = host;
    this.#writer = writer;
    this.#events = events;
    this.#place = new Permit(host.answering, address);
  }

  /** The stream is used for questions. */
  get began(): boolean {
    return this.#lastNonce !== '' || this.#place.held || this.#place.waiting;
  }

  isQuestion({ typeUrl }: DiscoveryRequest): boolean {
    return this.#host.questions?.isOne(typeUrl) === true;
  }

  ask({ typeUrl, names, nonce }: DiscoveryRequest, client: { address: string; identity?: PeerIdentity }): void {
    // An acknowledgement. Istio's client puts a nonce of its own into questions.
    if (nonce !== '' && nonce === this.#lastNonce) {
      this.#events.answered();
      return;
    }
    const question = { typeUrl, names: names.strings(), ...client };
    this.#place.take(
      () => void this.#answer(question).catch((error: unknown) => this.#settled(() => this.#events.failed(error))),
    );
  }

  close(): void {
    this.#closed = true;
    this.#end?.abort();
    this.#place.leave();
  }

  async #answer(question: Parameters<Questions['answer']>[0]): Promise<void> {
    this.#end = new AbortController();
    const answer = await this.#host.questions!.answer(question, this.#end.signal);
    if (this.#closed) return;
    if ('code' in answer) {
      this.#settled(() => this.#events.denied(answer));
      return;
    }
    const frame = this.#host.frameOf(question.typeUrl, answer);
    this.#lastNonce = String(frame.nonce);
    this.#writer.write(
      [frame],
      () => this.#settled(() => this.#events.answered()),
      () => undefined,
    );
  }

  #settled(tell: () => void): void {
    this.#place.leave();
    if (!this.#closed) tell();
  }
}
