import type { KeyPair, TrustedRoots } from '../../model/credential.ts';
import type { DataSource, Secret } from '../gen/types.gen.ts';

/** A secret with its content. */
export function secretOf(name: string, content: KeyPair | TrustedRoots): Secret {
  if ('key' in content)
    return {
      name,
      tlsCertificate: { certificateChain: inline(content.certificates), privateKey: inline(content.key) },
    };
  const { certificates, revoked } = content;
  return {
    name,
    validationContext: { trustedCa: inline(certificates), ...(revoked !== '' && { crl: inline(revoked) }) },
  };
}

function inline(text: string): DataSource {
  return { inlineBytes: Buffer.from(text) };
}
