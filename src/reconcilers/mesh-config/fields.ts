import { isObject } from '../../api/json.ts';
import { choosesCode, codeNotChosen } from '../../api/proxy-variables.ts';
import type { Field, Findings } from '../field.ts';
import { ineffectiveFields } from '../ineffective-fields.ts';

/** Reports each field of the text that nothing acts on. */
export function reportIneffective({ value, findings }: Field, kind: 'MeshConfig' | 'MeshNetworks'): void {
  const { object, found } = findings;
  for (const problem of ineffectiveFields(value, kind)) found.add({ object, ...problem });
}

/** Reports variables that proxies do not get. */
export function reportVariables({ object, found }: Findings, variables: Field): void {
  for (const name of isObject(variables.value) ? Object.keys(variables.value) : [])
    if (choosesCode(name))
      found.add({
        object,
        field: `defaultConfig.proxyMetadata.${name}`,
        reason: 'Ineffective',
        message: codeNotChosen,
      });
}
