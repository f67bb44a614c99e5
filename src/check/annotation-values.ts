import { parseJson } from '../api/annotation-json.ts';
import { isObject } from '../api/json.ts';
import { quote } from '../api/quote.ts';
import { trafficDistribution } from '../reconcilers/core/service.ts';

/** What is wrong with the value of an annotation that other objects than Pods have, and what to write. */
const readers: Readonly<Record<string, (text: string) => string | undefined>> = {
  'networking.istio.io/exportTo': wrongExport,
  'networking.istio.io/traffic-distribution': (text) =>
    trafficDistribution(text) !== undefined || text.toLowerCase() === 'any'
      ? undefined
      : `${quote(text)} is not known, and has no effect. Write PreferSameZone or PreferSameNode.`,
  'traffic.istio.io/nodeSelector': (text) =>
    isObject(parseJson(text))
      ? undefined
      : `${quote(text)} is not JSON, and selects no node. Write labels, or {} for all nodes.`,
};

export function wrongValue(name: string, text: string): string | undefined {
  return Object.hasOwn(readers, name) ? readers[name]!(text) : undefined;
}

function wrongExport(text: string): string | undefined {
  const odd = text
    .split(',')
    .map((part) => part.trim())
    .find((part) => part !== '' && !/^([.*~]|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$/.test(part));
  return odd === undefined
    ? undefined
    : `${quote(odd)} is not a namespace, so it makes the Service visible to nobody. List namespaces by name, or write "." for its own, "*" for all, or "~" for none.`;
}
