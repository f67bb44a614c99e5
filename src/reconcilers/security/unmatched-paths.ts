import type { ListenerSettings } from '../../model/mesh-config.ts';
import { isPathTemplate } from './rule-values.ts';

type Normalization = ListenerSettings['pathNormalization'];

/** What Envoy does with a path before policies see it, in the order of its steps. Found by asking Envoy 1.40. */
const steps: readonly (readonly [(value: string, mode: Normalization) => boolean, string])[] = [
  [(value) => /[?#]/.test(value), 'paths are compared without query and fragment'],
  [(value) => !/^[/*]/.test(value), 'paths begin with /'],
  [(value) => /[^\x21-\x7e]/.test(value), 'spaces and letters beyond ASCII are percent-encoded'],
  [
    (value, mode) => mode === 'DECODE_AND_MERGE_SLASHES' && /%(2f|5c)/i.test(value),
    'encoded slashes are decoded first',
  ],
  [(value, mode) => mode.endsWith('MERGE_SLASHES') && value.includes('//'), 'adjacent slashes are merged first'],
  [(value, mode) => mode !== 'NONE' && /(^|\/)\.\.?(\/|$)/.test(value), '. and .. are resolved first'],
  [(value, mode) => mode !== 'NONE' && value.includes('\\'), 'a backslash becomes a slash first'],
  [
    (value, mode) => mode !== 'NONE' && /%(2[de]|3\d|[46][1-9a-f]|[57][0-9a]|5f|7e)/i.test(value),
    'letters, digits and -._~ are decoded first',
  ],
  [
    (value, mode) => mode !== 'NONE' && (isPathTemplate(value) ? /["<>^`|]/ : /["<>^`{|}]/).test(value),
    '"<>^`{|} are percent-encoded first',
  ],
];

/** Why no request has the path, as requests are when policies see them; undefined if some may. */
export function whyUnmatched(path: string, mode: Normalization): string | undefined {
  return steps.find(([isUnmatched]) => isUnmatched(path, mode))?.[1];
}
