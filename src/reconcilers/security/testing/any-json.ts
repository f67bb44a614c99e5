import fc from 'fast-check';

/** JSON of any shape, in which these keys and texts are frequent. */
export function anyJson(keys: readonly string[], texts: readonly string[]): fc.Arbitrary<unknown> {
  const key = fc.constantFrom(...keys, '__proto__', 'constructor');
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'large', withCrossShrink: true },
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', '\ud800', '\0', ...texts),
      fc.double(),
      fc.constant(null),
      fc.boolean(),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.dictionary(key, tie('json'), { maxKeys: 6 }),
    ),
  }));
  return json;
}
