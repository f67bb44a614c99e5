import type { Writable } from 'node:stream';
import { createLogger as createWinston, format, transports } from 'winston';
import type { LogFormat, LogLevel } from '../config/settings.ts';
import { type Entry, logLine } from './log-line.ts';

/** A logger whose level can be set while it is in use. */
export interface LevelledLogger extends Logger {
  level: LogLevel;
}

/** Constant message, variable fields; objects are written as kind/namespace/name, errors go into `err`. */
export interface Logger {
  error(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  debug(message: string, fields?: object): void;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Standard error by default: standard output is for what commands print. */
  readonly stream?: Writable;
}

export const logLevels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug'];

export function createLogger({ level, format: style, stream = process.stderr }: LoggerOptions): LevelledLogger {
  const winston = createWinston({
    level,
    format: format.printf((entry) => logLine(style, entry as unknown as Entry)),
    transports: [new transports.Stream({ stream })],
  });
  // The reader of the log may go away. Without this listener, that would end the process.
  if (stream.listenerCount('error') === 0) stream.on('error', () => {});
  let enabled = logLevels.indexOf(level);
  const logAt = (at: LogLevel): Logger['info'] => {
    const index = logLevels.indexOf(at);
    return (message, fields = {}) => {
      // winston takes a few microseconds to find out that a level is off.
      if (index > enabled) return;
      // Fields are passed as one object: winston would take a field called `message` for part of the message.
      winston.log({ level: at, message, fields, time: new Date().toISOString() });
    };
  };
  return {
    get level() {
      return winston.level as LogLevel;
    },
    set level(set) {
      winston.level = set;
      enabled = logLevels.indexOf(set);
    },
    error: logAt('error'),
    warn: logAt('warn'),
    info: logAt('info'),
    debug: logAt('debug'),
  };
}
