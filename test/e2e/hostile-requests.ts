import fc, { type Arbitrary } from 'fast-check';

/** In either case, which may differ between the digits. */
function escapeOf(code: number): Arbitrary<string> {
  const digits = [...code.toString(16).padStart(2, '0')].map((digit) => fc.constantFrom(digit, digit.toUpperCase()));
  return fc.tuple(...digits).map((chosen) => `%${chosen.join('')}`);
}

const anyEscape = fc.integer({ min: 0, max: 0xff }).chain(escapeOf);

/** What a segment may hold besides letters. Envoy refuses control characters. */
const oddCharacter = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(...'[]{}<>()"\'`^|;:,.~!@$&*+=%') },
  { weight: 10, arbitrary: fc.constantFrom('[', ']') },
  { weight: 5, arbitrary: fc.integer({ min: 0x80, max: 0xff }).map((code) => String.fromCharCode(code)) },
);

/** One segment, if the receiver leaves escaped slashes alone. */
const segment = fc
  .array(fc.oneof(fc.constantFrom('a', '1', 'delete'), oddCharacter, anyEscape), { minLength: 1, maxLength: 5 })
  .map((parts) => parts.join(''));

const separator = fc.oneof(
  { weight: 12, arbitrary: fc.constant('/') },
  fc.constantFrom('//', '///', '/./', '/x/../', '/%2e/', '/x/%2E./', '/.;a/', '/x/..;a/', '\\', '%2f', '%5C', ';/'),
);

const end = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  fc.constantFrom('?', '?a=/..', '#', '#/a', '/', '/.', '/x/..', '/..', ';a', '%', '%00', '%2f'),
);

function spelledCharacter(character: string): Arbitrary<string> {
  if (character === '/') return separator;
  return fc.oneof({ weight: 12, arbitrary: fc.constant(character) }, escapeOf(character.charCodeAt(0)));
}

/** Paths that match the template, or nearly so: `{*}` is any segment, `{**}` any number of them. */
export function pathsLike(template: string): Arbitrary<string> {
  const several = fc.array(fc.tuple(segment, separator), { maxLength: 3 }).map((all) => all.flat().join(''));
  const parts = template.split(/(\{\*\*?\})/).flatMap((part) => {
    if (part === '{*}') return [segment];
    return part === '{**}' ? [several] : [...part].map(spelledCharacter);
  });
  return fc
    .tuple(...parts, end)
    .map((all) => all.join(''))
    .filter((path) => path.startsWith('/'));
}

/**
 * What a workload may take the path for that it received: it resolves dots and backslashes as browsers do, and decodes
 * what need not have been encoded; after `merges`, escaped slashes, too.
 */
export function readingOf(url: string, merges: boolean): string {
  const [sent = ''] = url.split(/[?#]/);
  const path = merges ? sent.replaceAll(/%2f|%5c/gi, '/').replaceAll(/\/{2,}/g, '/') : sent;
  return new URL(`http://server.shop${path}`).pathname.replaceAll(
    /%(2[de]|3\d|[46][1-9a-f]|[57][0-9a]|5f|7e)/gi,
    decodeURIComponent,
  );
}

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '*', '/', 'a/b', 'a\nb', '\n', '\r\n', '\0', 'true', '5', '\u2028', '\ud800'),
);

/** What a token may say of a subject, a role: any JSON. */
export const anyClaim: Arbitrary<unknown> = fc.oneof(
  anyText,
  fc.array(anyText),
  fc.constantFrom(null, true, false, 0, -1, 5e-324, Number.MAX_VALUE, -Number.MAX_VALUE, 2 ** 53),
  fc.constantFrom([], {}, [[]], [{}], [null], [[null]], { '': null }),
  fc.jsonValue({ maxDepth: 5 }),
);
