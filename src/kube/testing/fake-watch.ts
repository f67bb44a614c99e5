/** The bytes of a watch, arriving as the test decides. */
export class FakeWatch implements AsyncIterable<Uint8Array> {
  private readonly ready: string[] = [];
  private wake: () => void = () => undefined;
  private end: 'open' | 'ended' | Error = 'open';
  private muted = false;
  private corrupting: string | undefined;
  private readonly onClose: () => void;

  constructor(onClose: () => void) {
    this.onClose = onClose;
  }

  send(line: string): void {
    if (this.muted || this.end !== 'open') return;
    this.ready.push(
      this.corrupting === undefined ? `${line}\n` : `${line.slice(0, line.length / 2)}${this.corrupting}\n`,
    );
    this.corrupting = undefined;
    this.wake();
  }

  /** Garbles the next line in transit: `noise` replaces its second half. */
  corrupt(noise = ''): void {
    this.corrupting = noise;
  }

  /** The connection dies without either side noticing. */
  mute(): void {
    this.muted = true;
  }

  /** The server ends the response. */
  finish(): void {
    this.close('ended');
  }

  fail(error: Error): void {
    this.close(error);
  }

  private close(end: 'ended' | Error): void {
    if (this.end !== 'open') return;
    this.end = end;
    this.onClose();
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        for (let line = this.ready.shift(); line !== undefined; line = this.ready.shift()) yield Buffer.from(line);
        if (this.end instanceof Error) throw this.end;
        if (this.end === 'ended') return;
        await new Promise<void>((resolve) => (this.wake = resolve));
      }
    } finally {
      this.close('ended');
    }
  }
}
