// Every service of the bookshop: SERVICE says which one this is, VERSION which version of it.
'use strict';
const http = require('node:http');

const { SERVICE = 'storefront', VERSION = 'v1', HOSTNAME = '', PORT = '8080' } = process.env;

/** What the storefront asks for, by the names that the mesh knows. */
const PARTS = { reviews: 'http://reviews/', stock: 'http://stock/', covers: 'http://covers.example.com/' };

/** Headers that routes match on, and that traces follow: services forward them. */
const FORWARDED = /^(x-reader|x-rehearse|x-request-id|traceparent|tracestate|b3|x-b3-.*)$/;

const CONTENT = {
  reviews: { text: 'Could not put it down.', ...(VERSION === 'v1' ? {} : { stars: 5 }) },
  stock: { copies: 7 },
  covers: { colour: 'blue' },
};

async function ask(name, headers) {
  try {
    const response = await fetch(PARTS[name], { headers, signal: AbortSignal.timeout(3000) });
    const text = await response.text();
    return response.ok ? { ...JSON.parse(text), status: response.status } : { status: response.status, reason: text };
  } catch (error) {
    return { status: 0, reason: String(error.cause ?? error) };
  }
}

async function answer(request) {
  const self = { service: SERVICE, version: VERSION, pod: HOSTNAME };
  if (SERVICE !== 'storefront') return { ...self, ...CONTENT[SERVICE] };
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => FORWARDED.test(name)));
  const parts = await Promise.all(Object.keys(PARTS).map(async (name) => [name, await ask(name, headers)]));
  return { ...self, parts: Object.fromEntries(parts) };
}

const server = http.createServer((request, response) => {
  const send = (body) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`${JSON.stringify(body, undefined, 2)}\n`);
  };
  if (request.url === '/healthz') send({ ok: true });
  else void answer(request).then(send);
});
server.listen(Number(PORT));

// Requests in flight are answered; Kubernetes sends no new ones.
process.on('SIGTERM', () => server.close(() => process.exit(0)));
