import type { Log } from '../client/log.ts';

/** Keeps everything that was logged. */
export class RecordingLog implements Log {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: object }[] = [];
  private readonly waiting: { readonly text: string; readonly resolve: () => void }[] = [];

  debug(message: string, fields: object = {}): void {
    this.say('debug', message, fields);
  }
  info(message: string, fields: object = {}): void {
    this.say('info', message, fields);
  }
  warn(message: string, fields: object = {}): void {
    this.say('warn', message, fields);
  }
  error(message: string, fields: object = {}): void {
    this.say('error', message, fields);
  }

  messages(): string[] {
    return this.lines.map((line) => line.message);
  }

  /** Resolves once a line with this text was logged. */
  async until(text: string): Promise<void> {
    if (!this.messages().some((message) => message.includes(text)))
      await new Promise<void>((resolve) => this.waiting.push({ text, resolve }));
  }

  private say(level: string, message: string, fields: object): void {
    this.lines.push({ level, message, fields });
    for (const { text, resolve } of this.waiting) if (message.includes(text)) resolve();
  }
}
