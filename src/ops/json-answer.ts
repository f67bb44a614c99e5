import type { Answer } from './http-server.ts';

/** An answer whose pieces are there. */
interface JsonAnswer extends Answer {
  readonly body: string | Iterable<string>;
}

export function jsonAnswer(value: unknown, status = 200): JsonAnswer {
  return { status, type: 'application/json', body: `${JSON.stringify(value, undefined, 2)}\n` };
}

/** An array that is serialized one element at a time. */
export function jsonArrayAnswer(elements: Iterable<unknown>): JsonAnswer {
  return { type: 'application/json', body: jsonPieces(elements, '[', ']') };
}

/** The same for an object with many members. */
export function jsonObjectAnswer(members: Iterable<readonly [string, unknown]>): JsonAnswer {
  return { type: 'application/json', body: pieces(printed(members), '{', '}') };
}

/** Elements between `before` and `after`, which make them an array, or an array in an object. */
export function jsonPieces(elements: Iterable<unknown>, before: string, after: string): Iterable<string> {
  return pieces(serialized(elements), before, after);
}

function* pieces(elements: Iterable<string>, before: string, after: string): Generator<string> {
  yield before;
  let separator = '\n';
  for (const element of elements) {
    yield separator + element;
    separator = ',\n';
  }
  yield `\n${after}\n`;
}

function* serialized(elements: Iterable<unknown>): Generator<string> {
  for (const element of elements) yield JSON.stringify(element);
}

function* printed(members: Iterable<readonly [string, unknown]>): Generator<string> {
  for (const [name, value] of members) yield `${JSON.stringify(name)}: ${JSON.stringify(value)}`;
}
