import { type Json, isObject } from '../api/json.ts';
import { printRef } from '../api/object.ts';
import type { ProxyConfigModel } from '../model/proxy-config.ts';
import { reconcileProxyConfig } from '../reconcilers/proxy-config/proxy-config.ts';
import { readDocument } from '../yaml/document.ts';

/** The ProxyConfigs among documents of files, and in lists of these. What is wrong with them is told, and they are not used. */
export function proxyConfigsIn(
  documents: readonly { readonly text: string; readonly place: string }[],
  defaultNamespace: string,
  tell: (place: string, problem: string) => void,
): readonly ProxyConfigModel[] {
  return documents.flatMap(({ text, place }) => {
    if (!text.includes('ProxyConfig')) return [];
    const read = readDocument(text);
    if (!('value' in read) || !isObject(read.value)) return [];
    const { items } = read.value;
    const objects: readonly unknown[] = Array.isArray(items) ? items : [read.value];
    return objects.flatMap((object) => {
      if (!isObject(object) || !isProxyConfig(object)) return [];
      const metadata: Json = isObject(object['metadata']) ? object['metadata'] : {};
      const textOf = (name: string): string => (typeof metadata[name] === 'string' ? metadata[name] : '');
      const { models, problems } = reconcileProxyConfig(
        {
          apiVersion: '',
          kind: 'ProxyConfig',
          metadata: {
            name: textOf('name'),
            namespace: textOf('namespace') || defaultNamespace,
            creationTimestamp: textOf('creationTimestamp'),
          },
          spec: object['spec'],
        },
        '',
      );
      for (const problem of problems) tell(place, `${printRef(problem.object)}: ${problem.field}: ${problem.message}`);
      return models;
    });
  });
}

function isProxyConfig({ apiVersion, kind }: Json): boolean {
  return kind === 'ProxyConfig' && typeof apiVersion === 'string' && apiVersion.startsWith('networking.istio.io/');
}
