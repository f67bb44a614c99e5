const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE'];

/** The method that was meant, where the case keeps a method from ever being that of a request. */
export function methodMeant(method: string): string | undefined {
  const upper = method.toUpperCase();
  return method !== upper && METHODS.includes(upper) ? upper : undefined;
}
