import type { LogFormat, LogLevel } from '../config/settings.ts';

/** One line of a log. */
export interface Entry {
  readonly level: LogLevel;
  readonly time: string;
  readonly message: string;
  readonly fields: object;
}

/** As text without a line break at its end. Never throws. */
export function logLine(style: LogFormat, entry: Entry): string {
  return style === 'json' ? jsonLine(entry) : textLine(entry);
}

function jsonLine({ level, time, message, fields }: Entry): string {
  const members = [
    ['time', time],
    ['level', level],
    ['msg', message],
  ].map(([k, v]) => `"${k}":${JSON.stringify(v)}`);
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    members.push(`${JSON.stringify(reserved.has(key) ? `${key}_` : key)}:${stringify(plainValue(value))}`);
  }
  return harmless(`{${members.join(',')}}`);
}

const reserved = new Set(['time', 'level', 'msg']);

/** `2026-01-31T12:00:00.000Z  info   message  key=value`, then the stack of an error without a code (a bug). */
function textLine({ level, time, message, fields }: Entry): string {
  let line = `${time}  ${level.padEnd(5)}  ${oneLine(message)}`;
  const stacks: string[] = [];
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    if (value instanceof Error) {
      line += `  ${key}=${harmless(stringify(chain(value)))}`;
      // The stack starts with the message again, which may contain anything.
      if (!('code' in value) && value.stack !== undefined) stacks.push(...framesOf(value.stack));
    } else line += `  ${key}=${textOf(value)}`;
  }
  return [line, ...stacks].join('\n');
}

function textOf(value: unknown): string {
  if (typeof value === 'string' && value.length <= MAX_TEXT && /^[\w./:@~|*+-]+$/.test(value)) return value;
  return harmless(stringify(plainValue(value)));
}

function framesOf(stack: string): string[] {
  return stack.split('\n').filter((line) => /^ {4}at /.test(line));
}

/** Replaces characters in JSON with JSON escapes, so that its meaning stays the same. */
function harmless(json: string): string {
  return json.replace(deceptive, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Texts come from users and clients; longer ones are truncated. Characters. */
const MAX_TEXT = 2_048;

/** Names and values come from users: they must not move a terminal's cursor or reorder its text. */
const deceptive = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ');
}

function plainValue(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const code: unknown = 'code' in value ? value.code : undefined;
  return { message: chain(value), ...(code === undefined ? {} : { code }), stack: value.stack };
}

/** The messages of an error and of its causes. */
function chain(error: Error): string {
  const messages: string[] = [];
  for (let at: unknown = error; at instanceof Error && messages.length < 10; at = at.cause) {
    // A message that quotes its cause needs no repetition.
    if (!messages.some((message) => message.includes((at as Error).message))) messages.push(at.message);
  }
  return messages.join(': ');
}

/** Never throws: a value that cannot be written as JSON is not worth an exception. */
function stringify(value: unknown): string {
  try {
    return (
      JSON.stringify(value, (_, member: unknown) => {
        if (typeof member === 'string' && member.length > MAX_TEXT)
          return `${member.slice(0, MAX_TEXT)}… (${member.length} characters)`;
        return typeof member === 'bigint' ? member.toString() : member;
      }) ?? 'undefined'
    );
  } catch {
    return '"(circular)"';
  }
}
