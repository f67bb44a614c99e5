import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { HttpClient, serve } from './http.ts';
import type { Ports } from './ports.ts';

/** What the storefront learned from one of the services that it calls. */
export interface Part {
  readonly status: number;
  /** Version of the instance that responded; absent if none did. */
  readonly version?: string;
  readonly [detail: string]: unknown;
}

/** The storefront's response. */
export interface Page {
  readonly service: 'storefront';
  readonly version: string;
  readonly parts: Readonly<Record<PartName, Part>>;
}

/** The services behind the storefront, with the URLs that it calls. */
const PARTS = {
  reviews: 'http://reviews/',
  stock: 'http://stock/',
  covers: 'http://covers.example.com/',
} as const;

export type PartName = keyof typeof PARTS;
export const partNames = Object.keys(PARTS) as readonly PartName[];

/** Headers that routes match on: services forward them. */
const HANDED_ON = ['x-reader', 'x-rehearse'];

/** Starts the workloads of `examples/bookshop/workloads.yaml`, all in this process. Returns a function to stop them. */
export async function startBookshop(ports: Ports): Promise<() => void> {
  const client = new HttpClient();
  const closing = await Promise.all([
    serve(ports.storefront, storefront(client, ports.proxy)),
    serve(ports.reviewsV1, answering({ service: 'reviews', version: 'v1', text: 'Could not put it down.' })),
    serve(ports.reviewsV2, answering({ service: 'reviews', version: 'v2', text: 'Could not put it down.', stars: 5 })),
    serve(ports.stock, answering({ service: 'stock', version: 'v1', copies: 7 })),
    serve(ports.covers, answering({ service: 'covers', version: 'v1', colour: 'blue' })),
  ]);
  return () => {
    for (const close of closing) close();
    client.close();
  };
}

function answering(content: object): RequestListener {
  const body = JSON.stringify(content);
  return (_, response) => send(response, 'application/json', body);
}

/** Knows its neighbours only by name; its sidecar knows where they are. */
function storefront(client: HttpClient, proxy: number): RequestListener {
  const ask = async (name: PartName, headers: Record<string, string>): Promise<[PartName, Part]> => {
    try {
      const { status, body } = await client.get(PARTS[name], { headers, proxy });
      const content = status === 200 ? (JSON.parse(body) as object) : { reason: body };
      return [name, { ...content, status }];
    } catch (error) {
      return [name, { status: 0, reason: String(error) }];
    }
  };
  const show = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const headers = Object.fromEntries(
      HANDED_ON.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]])),
    );
    const parts = Object.fromEntries(await Promise.all(partNames.map((name) => ask(name, headers)))) as Page['parts'];
    const page: Page = { service: 'storefront', version: 'v1', parts };
    if (request.headers.accept?.includes('text/html')) send(response, 'text/html; charset=utf-8', html(page));
    else send(response, 'application/json', `${JSON.stringify(page, undefined, 2)}\n`);
  };
  return (request, response) => void show(request, response);
}

function html({ parts: { reviews, stock, covers } }: Page): string {
  const or = (part: Part, text: string): string => (part.status === 200 ? text : `not available (${part.status})`);
  return `<!doctype html><title>Bookshop</title><body style="font-family: sans-serif; margin: 3em">
<h1 style="color: ${or(covers, String(covers['colour']))}">The book of the week</h1>
<p>Reviews (${reviews.version ?? 'nobody'}): ${or(reviews, String(reviews['text']))}
${'★'.repeat(Number(reviews['stars'] ?? 0))}</p>
<p>In stock: ${or(stock, String(stock['copies']))}</p>
`;
}

function send(response: ServerResponse, type: string, body: string): void {
  response.writeHead(200, { 'content-type': type }).end(body);
}
