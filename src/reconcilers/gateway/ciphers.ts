/** The suites that BoringSSL, and so Envoy, knows by their OpenSSL names. */
const suites: ReadonlySet<string> = new Set([
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-SHA',
  'ECDHE-RSA-AES128-SHA',
  'ECDHE-ECDSA-AES256-SHA',
  'ECDHE-RSA-AES256-SHA',
  'AES128-GCM-SHA256',
  'AES256-GCM-SHA384',
  'AES128-SHA',
  'AES256-SHA',
  'DES-CBC3-SHA',
]);

/** Why an entry of `cipherSuites` cannot be used. It is a suite, an excluded one (`-X`, `!X`), or equals (`[X|Y]`). */
export function cipherProblem(cipher: string): string | undefined {
  if (cipher === '') return undefined;
  const group = /^\[(.*)\]$/.exec(cipher)?.[1];
  const named = group === undefined ? [cipher.replace(/^[-+!]/, '')] : group.split('|');
  const unknown = named.find((suite) => suite !== 'ALL' && !suites.has(suite));
  return unknown === undefined
    ? undefined
    : `${JSON.stringify(unknown)} is not a cipher suite that Envoy knows by name; TLS 1.3 suites cannot be configured.`;
}

/** Why BoringSSL rejects a list although it knows every entry. An empty list means BoringSSL's own choice. */
export function cipherListProblem(ciphers: readonly string[]): string | undefined {
  const operators = ciphers.filter((cipher) => /^[-+!]/.test(cipher));
  if (operators.length > 0 && ciphers.some((cipher) => cipher.startsWith('[')))
    return `cannot combine ${operators.join(' and ')} with a group in brackets; list the remaining suites instead.`;
  const chosen = new Set<string>();
  const barred = new Set<string>();
  for (const cipher of ciphers) {
    const operator = /^[-+!]/.exec(cipher)?.[0] ?? '';
    for (const suite of membersOf(cipher.slice(operator.length))) {
      if (operator === '-' || operator === '!') chosen.delete(suite);
      else if (operator === '' && !barred.has(suite)) chosen.add(suite);
      if (operator === '!') barred.add(suite);
    }
  }
  return ciphers.length > 0 && chosen.size === 0 ? 'leaves no cipher suite; name at least one.' : undefined;
}

function membersOf(text: string): readonly string[] {
  const named = text.replace(/^\[|\]$/g, '').split('|');
  return named.flatMap((suite) => (suite === 'ALL' ? [...suites] : [suite]));
}

/** Others that BoringSSL once had (`P-224`, `X25519Kyber768Draft00`) make Envoy 1.40 reject the TLS context. */
const curves: ReadonlySet<string> = new Set(['P-256', 'P-384', 'P-521', 'X25519', 'X25519MLKEM768', 'MLKEM1024']);

/** Why an entry of `ecdhCurves` cannot be used. */
export function curveProblem(curve: string): string | undefined {
  return curve === '' || curves.has(curve) ? undefined : `Envoy knows ${[...curves].join(', ')}.`;
}
