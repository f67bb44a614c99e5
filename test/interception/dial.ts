/** Prints what a request is answered, for HTTP, or for DNS the address of a name: UID GID http|udp|tcp FROM|- TO PORT NAME */
import { createSocket } from 'node:dgram';
import { get } from 'node:http';
import { connect, isIPv6 } from 'node:net';
import packet from 'dns-packet';

const [uid, gid, protocol, from, to = '', port, name = ''] = process.argv.slice(2);
process.setgroups?.([]);
process.setgid?.(Number(gid));
process.setuid?.(Number(uid));
/** The kernel drops what it cannot hand on. */
const LIMIT = 10_000;

const done = (answer: string): never => {
  process.stdout.write(answer);
  process.exit();
};
setTimeout(() => done('nobody'), LIMIT);

const query: packet.Packet = {
  type: 'query',
  id: 1,
  flags: packet.RECURSION_DESIRED,
  questions: [{ type: 'A', name }],
};
const addressIn = ({ answers = [] }: packet.Packet): string =>
  answers.flatMap((answer) => (answer.type === 'A' ? [answer.data] : [])).join() || 'no address';

if (protocol === 'udp') {
  const socket = createSocket(isIPv6(to) ? 'udp6' : 'udp4');
  socket.on('message', (answer) => done(addressIn(packet.decode(answer)))).on('error', ({ message }) => done(message));
  // Only what comes from there is an answer, as for a resolver.
  socket.connect(Number(port), to, () => void socket.send(packet.encode(query)));
} else if (protocol === 'tcp') {
  const socket = connect({ host: to, port: Number(port) }, () => void socket.write(packet.streamEncode(query)));
  socket
    .on('data', (answer) => done(addressIn(packet.streamDecode(answer))))
    .on('error', ({ message }) => done(message));
} else {
  const local = from === '-' ? {} : { localAddress: from };
  get({ host: to, port: Number(port), agent: false, ...local }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    response.on('end', () => done(response.statusCode === 200 ? text : `${response.statusCode} ${text}`));
  }).on('error', ({ message }) => done(message));
}
