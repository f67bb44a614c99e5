import { isIP } from 'node:net';

/** The kernel's resolver reads no more. */
const MAX_SERVERS = 3;

/** Addresses of the name servers of a resolv.conf. */
export function nameServersOf(text: string): readonly string[] {
  const found = text.split('\n').flatMap((line) => {
    const [keyword, address = ''] = line.trim().split(/\s+/);
    // A link-local address has its interface as a zone, which a rule about destinations does not have.
    const plain = address.split('%')[0] ?? '';
    return keyword === 'nameserver' && isIP(plain) !== 0 ? [plain] : [];
  });
  return [...new Set(found)].slice(0, MAX_SERVERS);
}
