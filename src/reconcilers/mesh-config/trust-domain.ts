import { quote } from '../../api/quote.ts';
import { Field, Findings } from '../field.ts';
import { type MeshConfigProblem, configMap, readMeshText } from './mesh-config.ts';

/** What a SPIFFE ID may have there. */
const valid = /^[A-Za-z0-9._-]{1,255}$/;

/**
 * The trust domain that the mesh config of another cluster names; nothing else of that config counts. Undefined: nothing
 * of it can be used.
 */
export function reconcileTrustDomain(
  yaml: string | undefined,
  rootNamespace: string,
): { readonly trustDomain: string | undefined; readonly problems: readonly MeshConfigProblem[] } {
  const findings = new Findings(configMap(rootNamespace));
  const field = new Field(readMeshText(yaml, findings), '', findings).expectObject().get('trustDomain');
  // As in Istio, where accounts of clouds are trust domains.
  const trustDomain = (field.string() || 'cluster.local').replaceAll('@', '.');
  if (!valid.test(trustDomain))
    field.invalid(`${quote(trustDomain)} is not a trust domain; use letters, digits, dots, dashes and underscores.`);
  const problems = findings.problems.map(({ field: path, ...problem }) => ({
    ...problem,
    field: path.replace(/^\./, ''),
  }));
  return { trustDomain: findings.invalid ? undefined : trustDomain, problems };
}
