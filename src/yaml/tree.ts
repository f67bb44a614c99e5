import { DocumentError, notYaml } from './document-error.ts';
import { Scanner, type Token } from './scanner.ts';

/** A value as it appears in the text; `at` is its offset. */
export type Node = ScalarNode | SequenceNode | MappingNode | AliasNode;

export interface ScalarNode {
  readonly kind: 'scalar';
  readonly at: number;
  readonly text: string;
  /** Empty if none is given. */
  readonly tag: string;
  /** Without quotes: its text determines what it is. */
  readonly isPlain: boolean;
}

export interface SequenceNode {
  readonly kind: 'sequence';
  readonly at: number;
  readonly items: readonly Node[];
}

export interface MappingNode {
  readonly kind: 'mapping';
  readonly at: number;
  readonly pairs: readonly Pair[];
}

export interface Pair {
  readonly key: Node;
  readonly value: Node;
}

export interface AliasNode {
  readonly kind: 'alias';
  readonly at: number;
  /** May be a node that contains the alias. */
  readonly target: Node;
}

/** Deeper than any Kubernetes object, and shallow enough for code that walks JSON recursively. */
export const MAX_DEPTH = 100;

/** The tree of a text with one document; undefined if it has no content. Throws a {@link DocumentError}. */
export function parseTree(text: string): Node | undefined {
  return new Parser(text).document();
}

type TokenType = Token['type'];

const TAG_PREFIX = 'tag:yaml.org,2002:';

class Parser {
  readonly #scanner: Scanner;
  readonly #anchors = new Map<string, Node>();
  readonly #handles = new Map([
    ['!', '!'],
    ['!!', TAG_PREFIX],
  ]);
  #depth = 0;

  constructor(text: string) {
    this.#scanner = new Scanner(text);
  }

  document(): Node | undefined {
    this.#directives();
    if (this.#is('---')) this.#scanner.next();
    const root = this.#is('---', '...', 'end') ? undefined : this.#node('block');
    while (this.#is('...')) this.#scanner.next();
    const { type, at } = this.#scanner.peek();
    if (type === '---') throw notYaml('a second document begins here, but only one is read', at);
    if (type !== 'end') throw notYaml('text after the end of the document', at);
    return root;
  }

  #directives(): void {
    let directive: number | undefined;
    for (;;) {
      const token = this.#scanner.peek();
      // kubectl knows no other version.
      if (token.type === '%YAML' && token.version !== '1.1')
        throw notYaml(`kubectl reads YAML 1.1, not ${token.version}; remove the line`, token.at);
      if (token.type === '%TAG') this.#handles.set(token.handle, token.prefix);
      else if (token.type !== '%YAML') break;
      directive = token.at;
      this.#scanner.next();
    }
    if (directive !== undefined && !this.#is('---'))
      throw notYaml('kubectl takes no directives before ---; remove the line', directive);
  }

  #is(...types: readonly TokenType[]): boolean {
    return types.includes(this.#scanner.peek().type);
  }

  /** `entry`: a block in which a list need not be indented, as after a key. */
  #node(context: 'block' | 'entry' | 'flow'): Node {
    const first = this.#scanner.peek();
    if (first.type === 'alias') {
      this.#scanner.next();
      const target = this.#anchors.get(first.name);
      if (target === undefined) throw new DocumentError(`the anchor &${first.name} is not defined above`, first.at);
      return { kind: 'alias', at: first.at, target };
    }
    if (++this.#depth > MAX_DEPTH) throw new DocumentError(`is nested more than ${MAX_DEPTH} levels deep`, first.at);
    const { anchor, tag } = this.#properties();
    const keep = <N extends Node>(node: N): N => {
      if (anchor !== undefined) this.#anchors.set(anchor, node);
      return node;
    };
    const node = this.#content(context, tag, keep);
    if (node === undefined && anchor === undefined && tag === '')
      throw notYaml(`a value is missing before ${name(this.#scanner.peek())}`, this.#scanner.peek().at);
    this.#depth--;
    return node ?? keep({ kind: 'scalar', at: first.at, text: '', tag, isPlain: true });
  }

  /** `keep` gets a collection before its content, which may contain an alias to it. */
  #content(context: 'block' | 'entry' | 'flow', tag: string, keep: <N extends Node>(node: N) => N): Node | undefined {
    const token = this.#scanner.peek();
    const { at } = token;
    switch (token.type) {
      case 'scalar': {
        this.#scanner.next();
        return keep({ kind: 'scalar', at, text: token.text, tag, isPlain: token.isPlain });
      }
      case '[':
        return this.#flowSequence(keep);
      case '{':
        return this.#flowMapping(keep);
      case '-':
        return context === 'entry' ? this.#sequence(at, keep) : undefined;
      case 'block-sequence': {
        if (context === 'flow') return undefined;
        this.#scanner.next();
        const node = this.#sequence(this.#scanner.peek().at, keep);
        this.#end('- or the end of the list');
        return node;
      }
      case 'block-mapping':
        return context === 'flow' ? undefined : this.#mapping(keep);
      default:
        return undefined;
    }
  }

  #properties(): { readonly anchor: string | undefined; readonly tag: string } {
    let anchor: string | undefined;
    let tag: string | undefined;
    for (;;) {
      const token = this.#scanner.peek();
      if (token.type === 'anchor' && anchor === undefined) anchor = token.name;
      else if (token.type === 'tag' && tag === undefined) tag = this.#tag(token);
      else return { anchor, tag: tag ?? '' };
      this.#scanner.next();
    }
  }

  #tag({ handle, suffix, at }: Extract<Token, { type: 'tag' }>): string {
    if (handle === '') return suffix;
    const prefix = this.#handles.get(handle);
    if (prefix === undefined) throw notYaml(`the tag handle ${handle} is not defined`, at);
    return prefix + suffix;
  }

  /** The end of a block; `expected` is what could have come instead. */
  #end(expected: string): void {
    const token = this.#scanner.next();
    if (token.type !== 'block-end') throw notYaml(`expected ${expected}, not ${name(token)}`, token.at);
  }

  /** The items of a block list. After the last one, the enclosing node continues. */
  #sequence(at: number, keep: <N extends Node>(node: N) => N): Node {
    const items: Node[] = [];
    const node = keep({ kind: 'sequence', at, items });
    while (this.#is('-')) {
      const entry = this.#scanner.next();
      items.push(this.#is('-', 'key', 'value', 'block-end') ? empty(entry.at) : this.#node('block'));
    }
    return node;
  }

  #mapping(keep: <N extends Node>(node: N) => N): Node {
    const { at } = this.#scanner.next();
    const pairs: Pair[] = [];
    const node = keep({ kind: 'mapping', at, pairs });
    while (this.#is('key')) {
      const key = this.#entry(['key', 'value', 'block-end'], 'entry');
      const value = this.#is('value') ? this.#entry(['key', 'value', 'block-end'], 'entry') : empty(key.at);
      pairs.push({ key, value });
    }
    this.#end('a key or the end of the map');
    return node;
  }

  #flowSequence(keep: <N extends Node>(node: N) => N): Node {
    const { at } = this.#scanner.next();
    const items: Node[] = [];
    const node = keep({ kind: 'sequence', at, items });
    this.#separated(']', at, () => {
      const start = this.#scanner.peek();
      if (start.type !== 'key') return void items.push(this.#node('flow'));
      // `[a: b]` is a list of maps with one key each.
      items.push({ kind: 'mapping', at: start.at, pairs: [this.#flowPair(']')] });
    });
    return node;
  }

  #flowMapping(keep: <N extends Node>(node: N) => N): Node {
    const { at } = this.#scanner.next();
    const pairs: Pair[] = [];
    const node = keep({ kind: 'mapping', at, pairs });
    this.#separated('}', at, () => {
      if (this.#is('key')) return void pairs.push(this.#flowPair('}'));
      const key = this.#node('flow');
      pairs.push({ key, value: empty(key.at) });
    });
    return node;
  }

  #flowPair(close: ']' | '}'): Pair {
    const key = this.#entry(['value', ',', close], 'flow');
    return { key, value: this.#is('value') ? this.#entry([',', close], 'flow') : empty(key.at) };
  }

  /** Items between commas, with an optional one after the last. `start`: where the bracket was opened. */
  #separated(close: ']' | '}', start: number, item: () => void): void {
    for (let isFirst = true; !this.#is(close); isFirst = false) {
      if (this.#is('end')) throw notYaml(`${close === ']' ? '[' : '{'} is never closed`, start);
      if (!isFirst) {
        const token = this.#scanner.next();
        if (token.type !== ',') throw notYaml(`expected , or ${close}, not ${name(token)}`, token.at);
        if (this.#is(close)) break;
      }
      item();
    }
    this.#scanner.next();
  }

  /** What follows an indicator; empty if one of `ends` comes next. */
  #entry(ends: readonly TokenType[], context: 'entry' | 'flow'): Node {
    const { at } = this.#scanner.next();
    return this.#is(...ends) ? empty(at) : this.#node(context);
  }
}

function empty(at: number): ScalarNode {
  return { kind: 'scalar', at, text: '', tag: '', isPlain: true };
}

/** How users see a token. */
function name(token: Token): string {
  switch (token.type) {
    case 'scalar':
      return JSON.stringify(token.text.length > 40 ? `${token.text.slice(0, 40)}…` : token.text);
    case 'end':
    case 'block-end':
      return 'the end';
    case 'block-sequence':
    case '-':
      return 'a list';
    case 'block-mapping':
    case 'key':
      return 'a key';
    case 'value':
      return 'a colon';
    case 'anchor':
      return `&${token.name}`;
    case 'alias':
      return `*${token.name}`;
    case 'tag':
      return 'a tag';
    default:
      return token.type;
  }
}
