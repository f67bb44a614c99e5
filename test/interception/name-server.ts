/** A name server, the agent's: PORT UID ADDRESS[,ADDRESS...] SERVER[,SERVER...] NAME=IPV4[,NAME=IPV4...] */
import { startDnsServer } from '../../src/agent/dns/dns-server.ts';
import { Names } from '../../src/agent/dns/names.ts';
import { Responder } from '../../src/agent/dns/responder.ts';
import { Upstream } from '../../src/agent/dns/upstream.ts';

const [port, uid, addresses = '', servers = '', table = ''] = process.argv.slice(2);
// The rules know its sockets by their owner.
process.setgid?.(Number(uid));
process.setuid?.(Number(uid));
const random = (): number => 0;
const names = new Names({ namespace: 'shop', domain: 'cluster.local', search: '' });
names.apply(
  table.split(',').map((entry) => {
    const [host = '', address = ''] = entry.split('=');
    return [host, { v4: Uint8Array.from(address.split('.').map(Number)), v6: new Uint8Array(), isShort: false }];
  }),
);
const upstream = new Upstream({ servers: servers.split(',').filter((server) => server !== ''), random });
await startDnsServer({
  addresses: addresses.split(','),
  port: Number(port),
  responder: new Responder({ names, upstream, random }),
  signal: new AbortController().signal,
});
process.stdout.write('listening\n');
