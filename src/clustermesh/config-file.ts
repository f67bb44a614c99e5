import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { LONGEST_CONFIG } from './etcd-config.ts';

/** Of a file that describes an etcd, or that may do so and cannot be read. */
export type ConfigContent = { readonly text: string } | { readonly unreadable: string };

/** Undefined: it is something else. Neither a pipe nor a device is opened for long, and nothing endless is read. */
export async function configFileIn(path: string): Promise<ConfigContent | undefined> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) return undefined;
      const buffer = Buffer.allocUnsafe(LONGEST_CONFIG + 1);
      let length = 0;
      for (let read = -1; read !== 0 && length < buffer.length; length += read)
        read = (await file.read(buffer, length, buffer.length - length)).bytesRead;
      const bytes = buffer.subarray(0, length);
      if (!bytes.includes('endpoints:')) return undefined;
      if (length > LONGEST_CONFIG) return { unreadable: `has more than ${LONGEST_CONFIG} bytes` };
      return { text: bytes.toString('utf8') };
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? undefined : { unreadable: `cannot be read: ${reasonOf(error)}` };
  }
}

export function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
