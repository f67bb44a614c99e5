// Every service of the bookshop: SERVICE says which one this is, VERSION which version of it.
//
//   /       what the service has; of the storefront, with what it gets of the others
//   /slow   the same, for which the reviews take three seconds
//   /echo   a WebSocket that sends back what it receives
'use strict';
const http = require('node:http');
const { echo } = require('./echo.js');

const { SERVICE = 'storefront', VERSION = 'v1', HOSTNAME = '', PORT = '8080' } = process.env;

/** What the storefront asks for, by the names that the mesh knows. */
const PARTS = { reviews: 'http://reviews/', stock: 'http://stock/', covers: 'http://covers.example.com/' };

const [SLOW_MS, LONGEST_MS] = [3000, 10_000];

/** Headers that routes match on, and that traces follow: services forward them. */
const FORWARDED = /^(x-reader|x-rehearse|x-request-id|traceparent|tracestate|b3|x-b3-.*)$/;

const CONTENT = {
  reviews: { text: 'Could not put it down.', ...(VERSION === 'v1' ? {} : { stars: 5 }) },
  stock: { copies: 7 },
  covers: { colour: 'blue' },
};

async function ask(url, headers) {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(LONGEST_MS) });
    const text = await response.text();
    return response.ok ? { ...JSON.parse(text), status: response.status } : { status: response.status, reason: text };
  } catch (error) {
    return { status: 0, reason: String(error.cause ?? error) };
  }
}

async function answer(request) {
  const self = { service: SERVICE, version: VERSION, pod: HOSTNAME };
  const slow = request.url === '/slow';
  if (SERVICE !== 'storefront') {
    if (slow) await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
    return { ...self, ...CONTENT[SERVICE] };
  }
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => FORWARDED.test(name)));
  const urls = { ...PARTS, ...(slow && { reviews: `${PARTS.reviews}slow` }) };
  const parts = await Promise.all(Object.entries(urls).map(async ([name, url]) => [name, await ask(url, headers)]));
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
// Proxies keep connections for an hour. Whoever closes idle ones earlier may do so while a request is on its way.
server.keepAliveTimeout = 0;
const sessions = echo(server);
server.listen(Number(PORT));

// Requests in flight are answered, and sessions are told to go elsewhere; Kubernetes sends no new ones.
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  sessions.close();
});
