import { type IncomingMessage, request } from 'node:http';

/** Envoy's admin interface. */
export interface Admin {
  /** Rejects unless it answers with 200. */
  get(path: string): Promise<string>;
  post(path: string): Promise<string>;
}

export const adminAt = (port: number, host: string): Admin => ({
  get: (path) => call({ host, port, path, method: 'GET' }),
  post: (path) => call({ host, port, path, method: 'POST' }),
});

/** Milliseconds; characters. The interface is on this machine. */
const [TIMEOUT, LONGEST] = [3_000, 4 * 1024 * 1024];

function call(options: { host: string; port: number; path: string; method: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...options, agent: false, timeout: TIMEOUT }, (response) => {
      textOf(response).then((text) => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${options.path}: ${response.statusCode} ${text.slice(0, 200)}`));
      }, reject);
    });
    sent.on('timeout', () => sent.destroy(new Error(`${options.path}: no answer`)));
    sent.on('error', reject);
    sent.end();
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > LONGEST) throw new Error('the answer is too long');
  }
  return text;
}
