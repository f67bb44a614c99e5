/** Of this process since its start, in milliseconds. */
export function cpu(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** In bytes, after garbage collection if Node runs with `--expose-gc`. */
export function heap(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
