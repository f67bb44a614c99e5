import { isIP } from 'node:net';

/** A range of addresses. An address alone is the range of itself. */
export interface Cidr {
  readonly address: string;
  readonly length: number;
}

/** Undefined for text that is neither an address nor a range. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const family = isIP(address);
  const longest = family === 4 ? 32 : 128;
  if (family === 0 || more.length > 0 || address.includes('%')) return undefined;
  if (bits === undefined) return { address, length: longest };
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > longest) return undefined;
  return { address, length: Number(bits) };
}

/** One text for ranges of the same addresses: `10.1.2.3/8` and `10.0.0.0/8` are equal. */
export function canonicalCidr(text: string): string {
  const cidr = parseCidr(text);
  if (cidr === undefined) return text;
  return printBlock(bytesOf(cidr.address), cidr.length);
}

/** Blocks that hold an address, of every fourth length; none for what is not one. */
export function blocksAround(address: string): readonly string[] {
  const cidr = parseCidr(address);
  if (cidr === undefined) return [];
  const bytes = bytesOf(address);
  return Array.from({ length: cidr.length / 4 }, (_, i) => printBlock(bytes, i * 4));
}

/** The smallest of these blocks that holds a range: at most 16 times as large. */
export function blockAround({ address, length }: Cidr): string {
  const full = isIP(address) === 4 ? 32 : 128;
  return printBlock(bytesOf(address), Math.min(full - 4, length - (length % 4)));
}

/** Whether an address is one of a range. */
export function covers({ address: first, length }: Cidr, address: string): boolean {
  if (isIP(address) !== isIP(first)) return false;
  const [a, b] = [bytesOf(first), bytesOf(address)];
  return a.every((byte, i) => {
    const kept = Math.min(8, Math.max(0, length - i * 8));
    return ((byte ^ b[i]!) & (0xff00 >> kept)) === 0;
  });
}

function bytesOf(address: string): readonly number[] {
  return isIP(address) === 4 ? v4Bytes(address) : v6Bytes(address);
}

function printBlock(bytes: readonly number[], length: number): string {
  const masked = bytes.map((byte, i) => {
    const kept = Math.min(8, Math.max(0, length - i * 8));
    return byte & (0xff00 >> kept);
  });
  return `${masked.join('.')}/${length}`;
}

function v4Bytes(address: string): number[] {
  return address.split('.').map(Number);
}

function v6Bytes(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const front = groupBytes(head);
  if (tail === undefined) return front;
  const back = groupBytes(tail);
  return [...front, ...new Array<number>(16 - front.length - back.length).fill(0), ...back];
}

/** Two bytes for each group; the last one may be written as an IPv4 address. */
function groupBytes(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return v4Bytes(group);
    const value = parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
