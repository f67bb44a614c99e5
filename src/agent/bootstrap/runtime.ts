/** Instructions of one regular expression (RE2); without the key, Envoy's own limit is 100. */
export const REGEX_LIMIT = 're2.max_program_size.error_level';

/** Source: what Istio sets; see the names in Envoy's documentation. */
const runtime: Readonly<Record<string, unknown>> = {
  [REGEX_LIMIT]: '32768',
  'envoy.reloadable_features.http_reject_path_with_fragment': false,
};

/** What Envoy's runtime has from the start. An empty value removes a key. */
export function runtimeOf(values: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  const merged: Record<string, unknown> = { ...runtime };
  for (const [key, value] of Object.entries(values)) {
    if (value === '') delete merged[key];
    else merged[key] = value === 'true' ? true : value === 'false' ? false : value;
  }
  return merged;
}
