import type { LogFormat, LogLevel } from '../config/settings.ts';
import { logLine } from '../ops/log-line.ts';

/** Constant message, variable fields. */
export type AgentLog = Readonly<Record<LogLevel, (message: string, fields?: object) => void>>;

const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug'];

/** The same lines as the control plane writes, without the memory of its logger. */
export function createAgentLog(
  { level, format }: { readonly level: LogLevel; readonly format: LogFormat },
  write: (line: string) => void,
): AgentLog {
  const at = (own: LogLevel) =>
    levels.indexOf(own) > levels.indexOf(level)
      ? () => {}
      : (message: string, fields: object = {}) =>
          write(`${logLine(format, { level: own, message, fields, time: new Date().toISOString() })}\n`);
  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') };
}
