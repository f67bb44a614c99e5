import type { CoreKindName } from './kinds.ts';
import type { Finding } from './schema-compile.ts';
import { isObject } from './schema-prune.ts';

/** What the members of a core kind are, where Fairlead reads them. Those with `!` must be there. */
const members: Readonly<Record<CoreKindName, Readonly<Record<string, 'object' | 'list' | 'string!' | 'object!'>>>> = {
  ConfigMap: { data: 'object' },
  Namespace: {},
  Node: {},
  Pod: { spec: 'object!', status: 'object' },
  Service: { spec: 'object!', status: 'object' },
  Endpoints: { subsets: 'list' },
  EndpointSlice: { addressType: 'string!', endpoints: 'list', ports: 'list' },
};

/** The outline only. The API server knows these kinds; what is read of them is read with care. */
export function validateCore(object: Readonly<Record<string, unknown>>, kind: CoreKindName): readonly Finding[] {
  const findings: Finding[] = [];
  for (const [name, wanted] of Object.entries(members[kind])) {
    const value = object[name];
    if (value === undefined || value === null) {
      if (wanted.endsWith('!')) findings.push({ path: [name], message: 'is missing' });
    } else if (wanted === 'list' && !Array.isArray(value)) findings.push({ path: [name], message: 'must be a list' });
    else if (wanted.startsWith('object') && !isObject(value))
      findings.push({ path: [name], message: 'must be an object' });
    else if (wanted === 'string!' && typeof value !== 'string')
      findings.push({ path: [name], message: 'must be a string; put it in quotes' });
  }
  return findings;
}
