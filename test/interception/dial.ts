/**
 * Makes requests as a user and a group (UID GID): reads one as JSON from each line of standard input, and prints as JSON
 * what it is answered, for HTTP the text, for DNS the address of a name. Ends with its input.
 */
import { createSocket } from 'node:dgram';
import { get } from 'node:http';
import { connect, isIPv6 } from 'node:net';
import { createInterface } from 'node:readline';
import packet from 'dns-packet';
import type { Dial } from './lab.ts';

const [uid, gid] = process.argv.slice(2);
process.setgroups?.([]);
process.setgid?.(Number(gid));
process.setuid?.(Number(uid));
/** The kernel drops what it cannot hand on. */
const LIMIT = 10_000;

const addressIn = ({ answers = [] }: packet.Packet): string =>
  answers.flatMap((answer) => (answer.type === 'A' ? [answer.data] : [])).join() || 'no address';

function dial({ to, port, protocol, from, name = '' }: Dial, done: (answer: string) => void): void {
  const query: packet.Packet = {
    type: 'query',
    id: 1,
    flags: packet.RECURSION_DESIRED,
    questions: [{ type: 'A', name }],
  };
  const failed = ({ message }: Error): void => done(message);
  if (protocol === 'udp') {
    const socket = createSocket(isIPv6(to) ? 'udp6' : 'udp4');
    socket.on('message', (answer) => done(addressIn(packet.decode(answer)))).on('error', failed);
    // Only what comes from there is an answer, as for a resolver.
    socket.connect(port, to, () => void socket.send(packet.encode(query)));
  } else if (protocol === 'tcp') {
    const socket = connect({ host: to, port }, () => void socket.write(packet.streamEncode(query)));
    socket.on('data', (answer) => done(addressIn(packet.streamDecode(answer)))).on('error', failed);
  } else {
    get({ host: to, port, agent: false, ...(from !== undefined && { localAddress: from }) }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => done(response.statusCode === 200 ? text : `${response.statusCode} ${text}`));
    }).on('error', failed);
  }
}

for await (const line of createInterface(process.stdin)) {
  const answer = await new Promise<string>((done) => {
    const timer = setTimeout(() => done('nobody'), LIMIT);
    dial(JSON.parse(line) as Dial, (text) => {
      clearTimeout(timer);
      done(text);
    });
  });
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit();
