import type { ErrorObject } from 'ajv';
import { withArticle } from './article.ts';
import { editDistance } from './schema-edit-distance.ts';

/** What the API server and the offline validator say if more than one field of a group is set. */
export function exclusiveMessage(fields: readonly string[]): string {
  return `at most one of ${fields.slice(0, -1).join(', ')} and ${fields.at(-1)} may be set`;
}

export function unknownMessage(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === undefined
    ? 'unknown field; it has no effect'
    : `unknown field; it has no effect. Did you mean ${nearest}?`;
}

/** The known name that was probably meant. */
function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > 40) return undefined;
  const plain = (text: string) => text.replaceAll(/[_-]/g, '').toLowerCase();
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(plain(name), plain(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  const [best] = ranked;
  return best !== undefined && best.distance <= Math.min(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

const TYPES: Readonly<Record<string, string>> = {
  object: 'an object',
  array: 'a list',
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
};

/** A sentence for an error in a JSON Schema keyword. */
export function keywordMessage({ keyword, params, data }: ErrorObject): string {
  const given = params as Readonly<Record<string, unknown>>;
  switch (keyword) {
    case 'type': {
      const type = String(given['type']);
      const quotes = type === 'string' && (typeof data === 'number' || typeof data === 'boolean');
      return `must be ${TYPES[type] ?? type}${quotes ? '; put it in quotes' : ''}`;
    }
    case 'required':
      return 'is missing';
    case 'enum':
      return `must be one of ${(given['allowedValues'] as readonly string[]).join(', ')}`;
    case 'minimum':
      return `must be at least ${given['limit']}`;
    case 'maximum':
      return `must be at most ${given['limit']}`;
    case 'minLength':
      return 'must not be empty';
    case 'maxLength':
      return given['limit'] === 0 ? 'is not supported; leave it out' : `must have at most ${given['limit']} characters`;
    case 'pattern':
      return `must match ${given['pattern']}`;
    case 'minItems':
      return `must have at least ${given['limit']} element${given['limit'] === 1 ? '' : 's'}`;
    case 'maxItems':
      return `must have at most ${given['limit']} elements`;
    case 'minProperties':
      return 'must not be empty';
    case 'maxProperties':
      return `must have at most ${given['limit']} members`;
    case 'format':
      return given['format'] === 'byte' ? 'must be base64' : `must be ${withArticle(String(given['format']))}`;
    default:
      return `violates the rule ${keyword}`;
  }
}
