import type { Answer } from './http-server.ts';

export function jsonAnswer(value: unknown, status = 200): Answer {
  return { status, type: 'application/json', body: `${JSON.stringify(value, undefined, 2)}\n` };
}

/** An array that is serialized one element at a time; `before` and `after` make it part of an object. */
export function jsonArrayAnswer(elements: Iterable<unknown>, before = '', after = ''): Answer {
  return { type: 'application/json', body: pieces(elements, before, after) };
}

function* pieces(elements: Iterable<unknown>, before: string, after: string): Generator<string> {
  yield `${before}[`;
  let separator = '\n';
  for (const element of elements) {
    yield separator + JSON.stringify(element);
    separator = ',\n';
  }
  yield `\n]${after}\n`;
}
