import type { Kind } from './kinds.ts';
import type { Finding } from './schema-compile.ts';
import { isObject } from './schema-prune.ts';

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Name and namespace, as the API server wants them. */
export function validateMetadata(metadata: unknown, kind: Kind): readonly Finding[] {
  if (!isObject(metadata))
    return [{ path: ['metadata'], message: metadata == null ? 'is missing' : 'must be an object' }];
  const findings: Finding[] = [];
  const { name, namespace } = metadata;
  if (typeof name !== 'string' || name === '')
    findings.push({
      path: ['metadata', 'name'],
      message: name == null || name === '' ? 'is missing' : 'must be a string; put it in quotes',
    });
  else if (!isName(name, kind))
    findings.push({ path: ['metadata', 'name'], message: 'must be a DNS name in lower case' });
  if (namespace == null || namespace === '') return findings;
  if (typeof namespace !== 'string')
    findings.push({ path: ['metadata', 'namespace'], message: 'must be a string; put it in quotes' });
  else if (!kind.namespaced)
    findings.push({ path: ['metadata', 'namespace'], message: `a ${kind.kind} has no namespace` });
  else if (!isLabel(namespace))
    findings.push({ path: ['metadata', 'namespace'], message: 'must be a DNS label in lower case' });
  return findings;
}

function isName(name: string, { kind }: Kind): boolean {
  return kind === 'Service' || kind === 'Namespace' ? isLabel(name) : name.length <= 253 && SUBDOMAIN.test(name);
}

function isLabel(text: string): boolean {
  return text.length <= 63 && LABEL.test(text);
}
