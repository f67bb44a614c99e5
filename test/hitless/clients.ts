import { Agent, type ClientRequest, request } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { Agent as TlsAgent, request as requestTls } from 'node:https';
import { connect as connectTcp } from 'node:net';
import type { Flow } from './world.ts';

/** What waits longer than this has failed. Milliseconds. */
const PATIENCE = 20_000;

/** A client that sends one request after the other. What it gets is `200 3` (the number of a back end), or why not. */
export class Client {
  readonly #flow: Flow;
  readonly #agent: Agent;
  #session: ClientHttp2Session | undefined;

  constructor(flow: Flow) {
    this.#flow = flow;
    const options = { keepAlive: !flow.fresh, maxSockets: 1 };
    this.#agent = flow.tls ? new TlsAgent(options) : new Agent(options);
  }

  ask(): Promise<string> {
    switch (this.#flow.protocol) {
      case 'http':
        return this.#http();
      case 'http2':
        return this.#http2();
      case 'tcp':
        return this.#tcp();
    }
  }

  close(): void {
    this.#agent.destroy();
    this.#session?.close();
  }

  #http(): Promise<string> {
    const { tls, port, host, path } = this.#flow;
    const options = { host: '127.0.0.1', port, path, headers: { host }, agent: this.#agent };
    return new Promise((resolve) => {
      const sent: ClientRequest = tls
        ? requestTls({ ...options, servername: host, rejectUnauthorized: false })
        : request(options);
      const failed = failure(resolve, (error) => sent.destroy(error));
      sent
        .on('response', (response) => {
          let body = '';
          response
            .setEncoding('utf8')
            .on('data', (text: string) => (body += text))
            .on('error', failed)
            .on('end', () => {
              failed.over();
              resolve(`${response.statusCode} ${body}`);
            });
        })
        .on('error', failed)
        .end();
    });
  }

  #http2(): Promise<string> {
    const session = this.#sessionNow();
    const { tls, host, path, fresh } = this.#flow;
    return new Promise((resolve) => {
      const failed = failure(resolve, (error) => stream.destroy(error));
      const stream = session.request({
        ':path': path,
        ':authority': host,
        ':scheme': tls ? 'https' : 'http',
      });
      let [status, body] = ['', ''];
      stream
        .setEncoding('utf8')
        .on('response', (headers) => (status = String(headers[':status'])))
        .on('data', (text: string) => (body += text))
        .on('error', failed)
        .on('close', () => {
          failed.over();
          if (fresh) session.close();
          resolve(status === '' ? `closed with ${stream.rstCode}` : `${status} ${body}`);
        });
      session.once('error', failed);
      stream.once('close', () => session.off('error', failed));
    });
  }

  /** A session that the server wants to close is left for another one. */
  #sessionNow(): ClientHttp2Session {
    const { tls, port, host, fresh } = this.#flow;
    const former = this.#session;
    if (!fresh && former !== undefined && !former.closed && !former.destroyed) return former;
    const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
    const session = connect(url, tls ? { servername: host, rejectUnauthorized: false } : {});
    session.on('goaway', () => {
      if (this.#session === session) this.#session = undefined;
      session.close();
    });
    session.on('error', () => undefined);
    return (this.#session = session);
  }

  #tcp(): Promise<string> {
    return new Promise((resolve) => {
      const socket = connectTcp(this.#flow.port, '127.0.0.1');
      const failed = failure(resolve, (error) => socket.destroy(error));
      let body = '';
      socket
        .setEncoding('utf8')
        .on('connect', () => socket.write('ask'))
        .on('data', (text: string) => (body += text))
        .on('error', failed)
        .on('close', () => {
          failed.over();
          resolve(body === '' ? 'closed without an answer' : `200 ${body}`);
        });
    });
  }
}

/** Resolves with an error's code, and with one of its own if nothing happens for too long. */
function failure(resolve: (answer: string) => void, end: (error: Error) => void) {
  const timer = setTimeout(() => end(new Error('no answer')), PATIENCE);
  const failed = (error: NodeJS.ErrnoException): void => {
    clearTimeout(timer);
    resolve(error.code ?? error.message);
  };
  return Object.assign(failed, { over: () => clearTimeout(timer) });
}
