import { meshDefinitions } from '../api/gen/mesh-config.gen.ts';
import type { Problem } from '../api/problem.ts';
import { unknownMessage } from '../api/schema-messages.ts';
import { printPath } from '../api/schema-path.ts';
import { prune } from '../api/schema-prune.ts';
import { unsupportedIn } from './unsupported-fields.ts';

export interface IneffectiveField extends Pick<Problem, 'reason' | 'message'> {
  /** Path within the value. */
  readonly field: string;
}

/** Names of unknown fields are compared with all that there are. */
const mostUnknown = 20;

/** The fields that nothing acts on: those that do not exist, and those of {@link unsupportedIn}. */
export function ineffectiveFields(value: unknown, kind: 'MeshConfig' | 'MeshNetworks'): readonly IneffectiveField[] {
  return [...unknownIn(value, kind), ...unsupportedIn(value, kind)];
}

/** The same of a ProxyConfig, as `defaultConfig` and Pods have it. */
export function ineffectiveInProxyConfig(value: unknown): readonly IneffectiveField[] {
  const unsupported = unsupportedIn({ defaultConfig: value }, 'MeshConfig').map(({ field, ...rest }) => ({
    field: field.replace(/^defaultConfig\./, ''),
    ...rest,
  }));
  return [...unknownIn(value, 'MeshProxyConfig'), ...unsupported];
}

function unknownIn(value: unknown, definition: string): IneffectiveField[] {
  const { unknown } = prune(value, { $ref: `#/definitions/${definition}` }, meshDefinitions, [], mostUnknown);
  return unknown.map(({ path, known }) => ({
    field: printPath(path),
    reason: 'Ineffective',
    message: unknownMessage(String(path.at(-1)), known),
  }));
}
