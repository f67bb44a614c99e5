/** Whether every version of Kubernetes takes it as the name of a variable. */
export function isEnvironmentName(name: string): boolean {
  return /^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name) && name !== '.' && !name.startsWith('..');
}
