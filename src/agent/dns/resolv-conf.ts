import { isIP } from 'node:net';

/** As much of resolv.conf as the agent needs. */
export interface ResolvConf {
  /** IP addresses, the first three as in the C library. */
  readonly servers: readonly string[];
  readonly search: readonly string[];
}

const MOST_SERVERS = 3;

/** Lines that cannot be read are ignored, as the C library does. */
export function parseResolvConf(text: string): ResolvConf {
  const servers: string[] = [];
  let search: readonly string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    const [first] = values;
    if (keyword === 'nameserver' && first !== undefined && isIP(first) !== 0) servers.push(first);
    // The last one counts; `domain` is a list of one.
    else if (keyword === 'search') search = values;
    else if (keyword === 'domain') search = values.slice(0, 1);
  }
  return { servers: servers.slice(0, MOST_SERVERS), search };
}
