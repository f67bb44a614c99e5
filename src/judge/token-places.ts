import type { JwtRule } from '../model/request-authentication.ts';
import { tokenPlaces } from '../settle/token-checks.ts';
import { isSameName, valuesOf } from './headers.ts';
import type { Header } from './request.ts';

/** What tokens are in, and are removed from. */
export interface TokenCarrier {
  headers: Header[];
  path: string;
}

interface FoundToken {
  readonly token: string;
  readonly remove: (carrier: TokenCarrier) => void;
}

/** The tokens where the issuer's are: in headers, parameters of the query, and cookies. */
export function tokensFor(rule: JwtRule, { headers, path }: TokenCarrier): readonly FoundToken[] {
  const { fromHeaders, fromParams, fromCookies } = tokenPlaces(rule);
  return [
    ...distinct(fromHeaders, ({ name, prefix }) => name.toLowerCase() + prefix).flatMap(({ name, prefix }) =>
      valuesOf(headers, name).flatMap((value): FoundToken[] => {
        const at = value.indexOf(prefix);
        if (at < 0) return [];
        const token = prefix === '' ? value : afterPrefix(value, at + prefix.length);
        const remove = (carrier: TokenCarrier): void => {
          carrier.headers = carrier.headers.filter(([each]) => !isSameName(each, name));
        };
        return [{ token, remove }];
      }),
    ),
    ...distinct(fromParams, (name) => name).flatMap((name): FoundToken[] => {
      const [token] = paramsOf(path).flatMap(([key, value]) => (key === name ? [value] : []));
      if (token === undefined) return [];
      const remove = (carrier: TokenCarrier): void => {
        carrier.path = withoutParam(carrier.path, name);
      };
      return [{ token, remove }];
    }),
    ...distinct(fromCookies, (name) => name).flatMap((name): FoundToken[] => {
      const token = cookie(headers, name);
      return token === undefined ? [] : [{ token, remove: () => undefined }];
    }),
  ];
}

/** In the order in which Envoy looks: that of their names. */
function distinct<T>(places: readonly T[], keyOf: (place: T) => string): readonly T[] {
  const byKey = new Map(places.map((place) => [keyOf(place), place]));
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, place]) => place);
}

/** What cannot be in a token is skipped; if there is nothing else, all of the value is taken for it. */
function afterPrefix(value: string, after: number): string {
  const start = value.slice(after).search(/[A-Za-z0-9\-_.]/);
  return start < 0 ? value : value.slice(after + start);
}

function paramsOf(path: string): readonly (readonly [string, string])[] {
  const query = /\?([^#]*)/.exec(path)?.[1] ?? '';
  return query.split('&').map((pair) => {
    const [name = '', ...value] = pair.split('=');
    return [percentDecoded(name), percentDecoded(value.join('='))];
  });
}

function withoutParam(path: string, name: string): string {
  const [before = '', query = ''] = path.split(/\?(.*)/s);
  const kept = query.split('&').filter((pair) => percentDecoded(pair.split('=')[0]!) !== name);
  return kept.length === 0 ? before : `${before}?${kept.join('&')}`;
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function cookie(headers: readonly Header[], name: string): string | undefined {
  for (const pair of valuesOf(headers, 'cookie').flatMap((value) => value.split(';'))) {
    const [key = '', ...value] = pair.split('=');
    if (key.trim() === name)
      return value
        .join('=')
        .trim()
        .replace(/^"(.*)"$/, '$1');
  }
  return undefined;
}
