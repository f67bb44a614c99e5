import type { Log } from '../log.ts';

/** Keeps what was said. */
export class RecordingLog implements Log {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: object }[] = [];

  debug(message: string, fields: object = {}): void {
    this.lines.push({ level: 'debug', message, fields });
  }
  info(message: string, fields: object = {}): void {
    this.lines.push({ level: 'info', message, fields });
  }
  warn(message: string, fields: object = {}): void {
    this.lines.push({ level: 'warn', message, fields });
  }
  error(message: string, fields: object = {}): void {
    this.lines.push({ level: 'error', message, fields });
  }

  messages(): string[] {
    return this.lines.map((line) => line.message);
  }
}
