import { writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { securePort } from '../features/secure-cluster.ts';
import { Directory } from '../features/sources.ts';
import { startEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { ask as askInPlaintext, startBackend } from './traffic.ts';

const object = (group: string, kind: string, name: string, spec: object): KubernetesObject =>
  ({ apiVersion: `${group}.istio.io/v1`, kind, metadata: { name, namespace: 'shop' }, spec }) as KubernetesObject;

const mode = (name: string) => object('security', 'PeerAuthentication', 'default', { mtls: { mode: name } });

interface Certificate {
  readonly certificate: string;
  readonly key: string;
  readonly roots: string;
}

function certificateFor(host: string): Certificate {
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

/** A request over TLS: the status, `refused`, or `untrusted` if the server has another certificate. */
function ask(port: number, roots: string, client?: Certificate): Promise<string> {
  const options = {
    ...{ host: '127.0.0.1', port, servername: 'web.example', headers: { host: 'web.example' }, agent: false as const },
    ...{ ca: roots, ...(client && { cert: client.certificate, key: client.key }) },
  };
  return new Promise((resolve) => {
    request(options, (response) => {
      response.resume();
      resolve(String(response.statusCode));
    })
      .on('error', () => resolve('refused'))
      .end();
  });
}

withPeers(['envoy'], 'a real Envoy as a sidecar', () => {
  test('terminates the TLS of ingress listeners with files, where there is no mutual TLS', async () => {
    const [server, client, stranger] = ['web.example', 'client', 'stranger'].map(certificateFor) as [
      Certificate,
      Certificate,
      Certificate,
    ];
    const files = await temporaryDirectory();
    await writeFile(join(files, 'cert.pem'), server.certificate);
    await writeFile(join(files, 'key.pem'), server.key);
    await writeFile(join(files, 'ca.pem'), client.roots);
    const backend = await startBackend('served');
    onTestFinished(() => backend.close());
    const [simple = 0, mutual = 0] = await freePorts(2);
    const pair = { serverCertificate: join(files, 'cert.pem'), privateKey: join(files, 'key.pem') };
    const listener = (number: number, protocol: string, tls: object) => ({
      port: { number, protocol, name: `port-${number}` },
      bind: '127.0.0.1',
      captureMode: 'NONE',
      defaultEndpoint: `127.0.0.1:${backend.port}`,
      tls: { ...pair, ...tls },
    });
    const directory = await Directory.create();
    await directory.apply(
      object('networking', 'Sidecar', 'default', {
        ingress: [
          listener(simple, 'HTTPS', { mode: 'SIMPLE', minProtocolVersion: 'TLSV1_3' }),
          listener(mutual, 'TLS', { mode: 'MUTUAL', caCertificates: join(files, 'ca.pem') }),
        ],
        egress: [{ hosts: ['./*'] }],
      }),
      mode('DISABLE'),
    );
    const { ca, settings } = await securePort();
    const program = await directory.start(settings);
    await program.logged('Ready');
    await program.logged('Signing certificates');
    const envoy = await startEnvoy({
      adsPort: program.serving.ports.secure!,
      delta: true,
      tls: await ca.certify('shop', 'web'),
      node: {
        id: 'sidecar~127.0.0.1~web-1.shop~shop.svc.cluster.local',
        metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: 'web', INTERCEPTION_MODE: 'NONE' },
      },
    });
    onTestFinished(() => envoy.stop());
    await envoy.ready();
    const until = (port: number, answer: string, certificate?: Certificate) =>
      poll(answer, async () => ((await ask(port, server.roots, certificate)) === answer ? true : undefined));
    await until(simple, '200');
    expect(await ask(simple, stranger.roots)).toBe('refused');
    await until(mutual, '200', client);
    expect([await ask(mutual, server.roots), await ask(mutual, server.roots, stranger)]).toEqual([
      'refused',
      'refused',
    ]);
    expect(await askInPlaintext(simple, 'web.example')).not.toMatch(/^200/);

    await directory.apply(mode('PERMISSIVE'));
    await poll('plaintext', async () =>
      (await askInPlaintext(simple, 'web.example')).startsWith('200') ? true : undefined,
    );
    expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
    const told = [...program.serving.engine.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
    expect(told.filter(({ reason }) => reason === 'Ineffective').map(({ field }) => field)).toEqual([
      'spec.ingress[0].tls',
      'spec.ingress[1].tls',
    ]);
  });
});
