/** Prints who answers: UID GID tcp|udp FROM|- TO PORT */
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';

const [uid, gid, protocol, from, to = '', port] = process.argv.slice(2);
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
if (protocol === 'udp') {
  const socket = createSocket(isIPv6(to) ? 'udp6' : 'udp4');
  socket.on('message', (text) => done(String(text))).on('error', ({ message }) => done(message));
  // Only what comes from there is an answer, as for a resolver.
  socket.connect(Number(port), to, () => void socket.send('?'));
} else {
  const local = from === '-' ? {} : { localAddress: from };
  const socket = connect({ host: to, port: Number(port), ...local });
  socket
    .setEncoding('utf8')
    .on('data', done)
    .on('error', ({ message }) => done(message));
}
