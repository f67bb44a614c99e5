import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { OnEnd } from '../../testing/on-end.ts';

/** The `openssl` command in a directory that ends with the test. */
export class OpenSsl {
  private readonly directory = mkdtempSync(join(tmpdir(), 'fairlead-openssl-'));

  constructor(onEnd: OnEnd = onTestFinished) {
    onEnd(() => rmSync(this.directory, { recursive: true }));
  }

  /** Output; throws what openssl complains about. Arguments are separated by spaces. */
  run(command: string): string {
    const { status, stdout, stderr } = spawnSync('openssl', command.split(' '), {
      cwd: this.directory,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`openssl ${command}: ${stderr}${stdout}`);
    return stdout;
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.directory, name), text);
  }

  read(name: string): string {
    return readFileSync(join(this.directory, name), 'utf8');
  }

  /** PEM of a CSR. `key`: options of `req -newkey`; `config`: lines of the request's extensions. */
  request(key: string, config: readonly string[] = [], options = ''): string {
    const extensions = config.length > 0 ? '\nreq_extensions = ext' : '';
    const head = `[req]\ndistinguished_name = dn\nprompt = no${extensions}\n[dn]\nCN = ignored\n`;
    this.write('request.cnf', [`${head}[ext]`, ...config, ''].join('\n'));
    this.run(`req -new -newkey ${key} -noenc -keyout request.key -out request.pem -config request.cnf${options}`);
    return this.read('request.pem');
  }

  /**
   * A root and an intermediate CA below it, as `root.pem`, `ca.pem` and their keys `root.key`, `ca.key`; in the layout
   * of Secret `cacerts`. `key`: options of `req -newkey`.
   */
  cacerts(
    key: string,
    { rootExtensions = '', caExtensions = 'basicConstraints=critical,CA:true' } = {},
  ): Record<string, string> {
    this.write('empty.cnf', '[req]\ndistinguished_name = dn\n[dn]\n');
    const root = 'basicConstraints=critical,CA:true' + rootExtensions;
    this.run(
      `req -x509 -newkey ${key} -noenc -keyout root.key -out root.pem -days 30 -subj /O=Shop/CN=root -config empty.cnf -addext ${root} -addext keyUsage=critical,keyCertSign -addext subjectKeyIdentifier=hash`,
    );
    this.run(`req -new -newkey ${key} -noenc -keyout ca.key -out ca.csr -subj /O=Shop/CN=ca -config empty.cnf`);
    this.write('ca.ext', `${caExtensions}\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n`);
    this.run('x509 -req -in ca.csr -CA root.pem -CAkey root.key -days 20 -extfile ca.ext -out ca.pem');
    return {
      'ca-cert.pem': this.read('ca.pem'),
      'ca-key.pem': this.read('ca.key'),
      'cert-chain.pem': this.read('ca.pem') + this.read('root.pem'),
      'root-cert.pem': this.read('root.pem'),
    };
  }
}
