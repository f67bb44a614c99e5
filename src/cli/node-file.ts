import { readFile } from 'node:fs/promises';
import { readDocument } from '../yaml/document.ts';
import type { ProxyNode } from './program.ts';
import { UsageError } from './usage-error.ts';

/** A proxy that gives nothing but its id. */
export function nodeOfId(nodeId: string): ProxyNode {
  if (nodeId === '') throw new UsageError('--proxy: the id is empty');
  return {
    nodeId,
    nodeCluster: '',
    metadata: {},
    locality: { region: '', zone: '', subZone: '' },
    build: '',
    extensions: [],
  };
}

/** The node with labels from the command line, `app=shop,version=v1`; they override its own. */
export function withLabels(node: ProxyNode, text: string): ProxyNode {
  const labels = text.split(',').map((pair) => {
    const [, name, value] = /^\s*([^=\s]+)=(\S*)\s*$/.exec(pair) ?? [];
    if (name === undefined || value === undefined)
      throw new UsageError(`--labels: ${JSON.stringify(pair)} must be key=value`);
    return [name, value] as const;
  });
  const own = node.metadata['LABELS'];
  const known = typeof own === 'object' && own !== null ? own : {};
  return { ...node, metadata: { ...node.metadata, LABELS: { ...known, ...Object.fromEntries(labels) } } };
}

/** Reads an Envoy `core.v3.Node` in JSON or YAML, with either spelling of field names. */
export async function readNodeFile(file: string): Promise<ProxyNode> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw new UsageError(`--node ${file}: cannot be read: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  }
  const document = readDocument(text);
  if ('broken' in document) throw new UsageError(`--node ${file}:${document.broken.line}: ${document.broken.message}`);
  return new Reading(file).node(document.value);
}

type Json = Readonly<Record<string, unknown>>;

class Reading {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  node(value: unknown): ProxyNode {
    const node = this.#object(value, 'the node');
    const locality = this.#object(node['locality'] ?? {}, 'locality');
    const extensions: unknown = node['extensions'] ?? [];
    if (!Array.isArray(extensions)) throw this.#wrong('extensions', 'must be a list');
    return {
      ...nodeOfId(this.#text(node, 'id') || this.#missing('id')),
      nodeCluster: this.#text(node, 'cluster'),
      metadata: this.#object(node['metadata'] ?? {}, 'metadata'),
      locality: {
        region: this.#text(locality, 'region'),
        zone: this.#text(locality, 'zone'),
        subZone: this.#text(locality, 'sub_zone', 'subZone'),
      },
      build: this.#build(node),
      extensions: extensions
        .map((extension) => this.#text(this.#object(extension, 'extensions'), 'name'))
        // As the server stores it.
        .filter((name) => !name.startsWith('envoy.')),
    };
  }

  #build(node: Json): string {
    const name = this.#text(node, 'user_agent_name', 'userAgentName');
    const build = this.#object(
      node['user_agent_build_version'] ?? node['userAgentBuildVersion'] ?? {},
      'build version',
    );
    const {
      major_number: a,
      majorNumber: b,
      minor_number: c,
      minorNumber: d,
      patch,
    } = this.#object(build['version'] ?? {}, 'build version');
    const major = a ?? b;
    const number = major === undefined ? '' : [major, c ?? d ?? 0, patch ?? 0].join('.');
    return [name, number || this.#text(node, 'user_agent_version', 'userAgentVersion')]
      .filter((p) => p !== '')
      .join(' ');
  }

  #object(value: unknown, what: string): Json {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw this.#wrong(what, 'must be an object');
    return value as Json;
  }

  #text(object: Json, ...names: readonly string[]): string {
    const name = names.find((each) => object[each] !== undefined && object[each] !== null);
    if (name === undefined) return '';
    const value = object[name];
    if (typeof value !== 'string') throw this.#wrong(name, 'must be a string');
    return value;
  }

  #missing(name: string): never {
    throw this.#wrong(name, 'is missing');
  }

  #wrong(field: string, message: string): UsageError {
    return new UsageError(`--node ${this.#file}: ${field}: ${message}`);
  }
}
