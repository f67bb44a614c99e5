import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TLSSocket, connect } from 'node:tls';
import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import type { Program } from '../features/program.ts';
import { securePort } from '../features/secure-cluster.ts';
import { Directory } from '../features/sources.ts';
import { startEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';

const networking = (kind: string, name: string, spec: object, namespace = 'shop'): KubernetesObject =>
  ({ apiVersion: 'networking.istio.io/v1', kind, metadata: { name, namespace }, spec }) as KubernetesObject;

const secret = (name: string, stringData: Readonly<Record<string, string>>, namespace = 'shop'): KubernetesObject =>
  ({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData }) as unknown as KubernetesObject;

/** A certificate for a host, and what signed it. */
function certificateFor(host: string) {
  const openssl = new OpenSsl();
  openssl.cacerts('ec -pkeyopt ec_paramgen_curve:P-256');
  openssl.request('ec -pkeyopt ec_paramgen_curve:P-256');
  openssl.write('leaf.ext', `subjectAltName=DNS:${host}\n`);
  openssl.run('x509 -req -in request.pem -CA ca.pem -CAkey ca.key -days 5 -extfile leaf.ext -out leaf.pem');
  return {
    certificate: openssl.read('leaf.pem') + openssl.read('ca.pem'),
    key: openssl.read('request.key'),
    roots: openssl.read('root.pem'),
  };
}

const pair = ({ certificate, key }: { readonly certificate: string; readonly key: string }) => ({
  'tls.crt': certificate,
  'tls.key': key,
});

/** HTTPS servers of one Gateway, each with its own host and Secret. */
function gateway(port: number, ...servers: readonly (readonly [host: string, tls: object])[]): KubernetesObject {
  return networking('Gateway', 'public', {
    servers: servers.map(([host, tls], i) => ({
      port: { number: port, name: `https-${i}`, protocol: 'HTTPS' },
      hosts: [host],
      tls,
    })),
  });
}

/** A real Envoy as a router of namespace `shop`, configured through the secure port. */
async function startRouter(directory: Directory) {
  const { ca, settings } = await securePort();
  const [port = 0] = await freePorts(1);
  const program = await directory.start(settings);
  await program.logged('Ready');
  await program.logged('Signing certificates');
  const router = await ca.certify('shop', 'router');
  const envoy = await startEnvoy({
    adsPort: program.serving.ports.secure!,
    delta: true,
    tls: router,
    node: {
      id: 'router~127.0.0.1~router-1.shop~shop.svc.cluster.local',
      metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: 'router', ISTIO_VERSION: '1.30.0' },
    },
  });
  onTestFinished(() => envoy.stop());
  return { port, program, envoy };
}

interface Client {
  readonly key?: string;
  readonly cert?: string;
}

/** A connection, with the host's name as SNI. */
async function dial(port: number, servername: string, ca: string, client: Client = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, servername, ca, ...client });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

/** The status of a request; `refused` if there is no connection, or no answer on it. */
async function ask(port: number, host: string, ca: string, client: Client = {}): Promise<string> {
  try {
    return await request(await dial(port, host, ca, client), host);
  } catch {
    return 'refused';
  }
}

function request(socket: TLSSocket, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('data', (bytes: Buffer) => resolve(bytes.toString().split(' ')[1] ?? ''));
    socket.once('error', reject).once('close', () => reject(new Error('closed')));
    socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  });
}

/** Settles when the owner of the Gateway is told so. */
async function told(program: Program, words: string): Promise<void> {
  await poll(words, async () => {
    const found = [...program.serving.engine.mesh.problems.byObject.entries()].flatMap(([, problems]) => problems);
    return found.some(({ reason, message }) => reason === 'RefNotFound' && message.includes(words)) || undefined;
  });
}

const until = (what: string, answer: string, again: () => Promise<string>) =>
  poll(what, async () => ((await again()) === answer ? true : undefined));

withPeers(['envoy'], 'a real Envoy as a router, with Secrets', () => {
  test('serves HTTPS when the Secret appears, and the renewed one without a dropped connection', async () => {
    const directory = await Directory.create();
    const { port, program, envoy } = await startRouter(directory);
    await directory.apply(gateway(port, ['a.example', { mode: 'SIMPLE', credentialName: 'a' }]));
    await envoy.ready();
    await told(program, 'does not exist; this server is left out');
    const first = certificateFor('a.example');
    await directory.apply(secret('a', pair(first)));
    await until('HTTPS', '404', () => ask(port, 'a.example', first.roots));

    const before = await dial(port, 'a.example', first.roots);
    const second = certificateFor('a.example');
    await directory.apply(secret('a', pair(second)));
    await until('the new certificate', '404', () => ask(port, 'a.example', second.roots));
    expect(await request(before, 'a.example')).toBe('404');
    expect(before.getPeerX509Certificate()!.fingerprint256).toBe(new X509Certificate(first.certificate).fingerprint256);

    // What was good stays in use.
    await directory.apply(secret('a', { ...pair(second), 'tls.key': first.key }));
    await told(program, 'what it last contained stays in use');
    await directory.delete(secret('a', {}));
    await told(program, 'does not exist; what it last contained stays in use');
    expect(await ask(port, 'a.example', second.roots)).toBe('404');
    expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
  });

  test('leaves out broken and foreign Secrets, and serves everything else', async () => {
    const directory = await Directory.create();
    const { port, program, envoy } = await startRouter(directory);
    const [good, other] = [certificateFor('good.example'), certificateFor('other.example')];
    await directory.apply(
      secret('good', pair(good)),
      secret('broken', { ...pair(good), 'tls.key': other.key }),
      secret('foreign', pair(other), 'elsewhere'),
      gateway(
        port,
        ['broken.example', { mode: 'SIMPLE', credentialName: 'broken' }],
        ['good.example', { mode: 'SIMPLE', credentialName: 'good' }],
        ['other.example', { mode: 'SIMPLE', credentialName: 'kubernetes://elsewhere/foreign' }],
      ),
    );
    await envoy.ready();
    await until('the good one', '404', () => ask(port, 'good.example', good.roots));
    expect(await ask(port, 'other.example', other.roots)).toBe('refused');
    expect(await ask(port, 'broken.example', good.roots)).toBe('refused');
    await told(program, 'is not the key of the first certificate in tls.crt');
    await told(program, 'is not in namespace shop');

    // Files of other namespaces.
    const backend = createServer({ key: good.key, cert: good.certificate }, (_, response) => response.end('served'));
    onTestFinished(() => void backend.close());
    await once(backend.listen(0, '127.0.0.1'), 'listening');
    const roots = join(await temporaryDirectory(), 'roots.pem');
    await writeFile(roots, good.roots);
    const rule = (tls: object): KubernetesObject =>
      networking('DestinationRule', 'api', { host: 'api.example', trafficPolicy: { tls } }, 'elsewhere');
    await directory.apply(
      networking(
        'ServiceEntry',
        'api',
        {
          hosts: ['api.example'],
          ports: [{ number: (backend.address() as AddressInfo).port, name: 'http', protocol: 'HTTP' }],
          resolution: 'STATIC',
          endpoints: [{ address: '127.0.0.1' }],
        },
        'elsewhere',
      ),
      rule({ mode: 'SIMPLE', sni: 'good.example', caCertificates: roots }),
      networking('VirtualService', 'api', {
        hosts: ['good.example'],
        gateways: ['public'],
        http: [{ route: [{ destination: { host: 'api.example' } }] }],
      }),
    );
    await until('no connection with these files', '503', () => ask(port, 'good.example', good.roots));
    await directory.apply(rule({ mode: 'SIMPLE', sni: 'good.example', insecureSkipVerify: true }));
    await until('a connection without files', '200', () => ask(port, 'good.example', good.roots));
    expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
  });

  test('asks clients for certificates of the authorities in the Secret, and heeds what these have revoked', async () => {
    const directory = await Directory.create();
    const { port, envoy } = await startRouter(directory);
    const server = certificateFor('a.example');
    const openssl = new OpenSsl();
    openssl.run(
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout root.key -out root.pem -days 5 -subj /CN=root -addext keyUsage=keyCertSign,cRLSign',
    );
    const certify = (name: string): Client => {
      openssl.request('ec -pkeyopt ec_paramgen_curve:P-256');
      openssl.run(`x509 -req -in request.pem -CA root.pem -CAkey root.key -days 5 -out ${name}.pem`);
      return { key: openssl.read('request.key'), cert: openssl.read(`${name}.pem`) };
    };
    const [good, revoked] = [certify('good'), certify('revoked')];
    await directory.apply(
      secret('a', pair(server)),
      secret('a-cacert', { 'ca.crt': openssl.read('root.pem') }),
      gateway(port, ['a.example', { mode: 'MUTUAL', credentialName: 'a' }]),
    );
    await envoy.ready();
    await until('mutual TLS', '404', () => ask(port, 'a.example', server.roots, good));
    expect(await ask(port, 'a.example', server.roots, revoked)).toBe('404');
    expect(await ask(port, 'a.example', server.roots)).toBe('refused');
    expect(await ask(port, 'a.example', server.roots, { key: server.key, cert: server.certificate })).toBe('refused');

    openssl.write('index', '');
    openssl.write('number', '01\n');
    openssl.write('ca.cnf', '[ca]\ndefault_ca=d\n[d]\ndatabase=index\ncrlnumber=number\ndefault_md=sha256\n');
    const ca = '-config ca.cnf -cert root.pem -keyfile root.key';
    openssl.run(`ca ${ca} -revoke revoked.pem`);
    openssl.run(`ca ${ca} -gencrl -crldays 5 -out crl.pem`);
    await directory.apply(
      secret('a-cacert', { 'ca.crt': openssl.read('root.pem'), 'ca.crl': openssl.read('crl.pem') }),
    );
    await until('the list', 'refused', () => ask(port, 'a.example', server.roots, revoked));
    expect(await ask(port, 'a.example', server.roots, good)).toBe('404');
  });
});
