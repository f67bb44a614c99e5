import { isObject, type Json } from '../api/json.ts';
import { printPath } from '../api/schema-path.ts';
import { Lines } from '../directory/lines.ts';
import { readPorts, readPortsOrAll, readRanges, readRangesOrAll } from '../interception/option-values.ts';
import { labelOperators, type LabelSelector } from '../model/label-selector.ts';
import { readDocument } from '../yaml/document.ts';
import { readAgentLevel } from './annotations.ts';
import type { DecisionRules } from './decision.ts';
import type { FileProblem } from './problem.ts';
import { mismatchOf, type Shape } from './shape.ts';
import { type Template, readTemplate } from './template.ts';

/** What the proxies of a mesh have in common. */
export interface ProxySettings {
  readonly image: string;
  /** Other images, by a name that ProxyConfigs and annotations have for them. */
  readonly imageTypes: Readonly<Record<string, string>>;
  readonly imagePullPolicy?: string;
  readonly imagePullSecrets: readonly Json[];
  readonly resources: Json;
  readonly initResources: Json;
  /** Of the readiness probe, where annotations do not say. */
  readonly readinessInitialDelaySeconds?: number;
  readonly readinessPeriodSeconds: number;
  readonly readinessFailureThreshold: number;
  readonly startupProbe: { readonly enabled: boolean; readonly failureThreshold: number };
  /** Hooks of the container, in place of those of the agent. */
  readonly lifecycle: Json;
  /** How the image runs Fairlead, for hooks: these do not use its entry point. */
  readonly command: readonly string[];
  readonly discoveryAddress: string;
  readonly caAddress?: string;
  readonly clusterId: string;
  readonly network?: string;
  readonly meshId?: string;
  readonly domainSuffix: string;
  readonly logLevel?: string;
  readonly componentLogLevel?: string;
  readonly agentLogLevel?: string;
  readonly includeOutboundIPRanges: string;
  readonly excludeOutboundIPRanges: string;
  readonly includeInboundPorts: string;
  readonly excludeInboundPorts: string;
  readonly includeOutboundPorts: string;
  readonly excludeOutboundPorts: string;
}

export interface InjectionConfig {
  readonly rules: DecisionRules;
  /** Applied in this order where a Pod names none. */
  readonly defaultTemplates: readonly string[];
  /** Whether proxies are init containers that go on running: every node must know these. */
  readonly nativeSidecars: boolean;
  readonly rewriteProbes: boolean;
  readonly proxy: ProxySettings;
  readonly templates: ReadonlyMap<string, Template>;
}

/** The file of the injection directory that has no template. */
export const CONFIG_FILE = 'config.yaml';

const selector: Shape = {
  members: {
    matchLabels: { map: 'text' },
    matchExpressions: {
      list: {
        members: { key: 'text', operator: { oneOf: labelOperators }, values: { list: 'text' } },
        required: ['key', 'operator'],
        closed: true,
      },
    },
  },
  closed: true,
};

const resources: Shape = { members: { requests: { map: 'any' }, limits: { map: 'any' } } };

const shape: Shape = {
  members: {
    revision: 'text',
    tags: { list: 'text' },
    policy: { oneOf: ['enabled', 'disabled'] },
    enableNamespacesByDefault: 'boolean',
    neverInjectSelector: { list: selector },
    alwaysInjectSelector: { list: selector },
    defaultTemplates: { list: 'text' },
    nativeSidecars: 'boolean',
    rewriteProbes: 'boolean',
    proxy: {
      members: {
        image: 'text',
        imageTypes: { map: 'text' },
        imagePullPolicy: { oneOf: ['Always', 'IfNotPresent', 'Never'] },
        imagePullSecrets: { list: { members: { name: 'text' }, required: ['name'] } },
        resources,
        initResources: resources,
        readinessInitialDelaySeconds: 'whole',
        readinessPeriodSeconds: 'whole',
        readinessFailureThreshold: 'whole',
        startupProbe: { members: { enabled: 'boolean', failureThreshold: 'whole' }, closed: true },
        lifecycle: { members: { postStart: 'any', preStop: 'any' }, closed: true },
        command: { list: 'text' },
        discoveryAddress: 'text',
        caAddress: 'text',
        clusterId: 'text',
        network: 'text',
        meshId: 'text',
        domainSuffix: 'text',
        logLevel: 'text',
        componentLogLevel: 'text',
        agentLogLevel: 'text',
        includeOutboundIPRanges: 'text',
        excludeOutboundIPRanges: 'text',
        includeInboundPorts: 'text',
        excludeInboundPorts: 'text',
        includeOutboundPorts: 'text',
        excludeOutboundPorts: 'text',
      },
      required: ['image', 'discoveryAddress'],
      closed: true,
    },
  },
  required: ['proxy'],
  closed: true,
};

/**
 * Reads the injection directory: {@link CONFIG_FILE}, and a template in each other file that ends in `.yaml` or `.yml`,
 * named as the file. Files with other names are not read. Any problem refuses it as a whole: whoever has a set that works keeps it.
 */
export function loadInjection(
  files: ReadonlyMap<string, string>,
): { readonly config: InjectionConfig } | { readonly problems: readonly FileProblem[] } {
  const problems: FileProblem[] = [];
  const settings = readSettings(files.get(CONFIG_FILE), problems);
  const templates = new Map<string, Template>();
  for (const [file, text] of files) {
    if (file === CONFIG_FILE || !/^[A-Za-z0-9][\w.-]*\.ya?ml$/.test(file)) continue;
    const read = readTemplate(file, text);
    if ('problems' in read) problems.push(...read.problems);
    else templates.set(read.template.name, read.template);
  }
  const defaultTemplates = (settings['defaultTemplates'] as string[] | undefined) ?? ['sidecar'];
  for (const name of defaultTemplates)
    if (!templates.has(name) && problems.length === 0)
      problems.push({
        file: CONFIG_FILE,
        line: 0,
        message: `defaultTemplates has ${name}, but there is no ${name}.yaml`,
      });
  return problems.length > 0 ? { problems } : { config: configOf(settings, defaultTemplates, templates) };
}

function readSettings(text: string | undefined, problems: FileProblem[]): Json {
  const refuse = (line: number, message: string): Json => {
    problems.push({ file: CONFIG_FILE, line, message });
    return {};
  };
  if (text === undefined) return refuse(0, 'is missing');
  const read = readDocument(text);
  if ('broken' in read) return refuse(read.broken.line, read.broken.message);
  const value = read.value ?? {};
  const mismatch = isObject(value) ? mismatchOf(value, shape) : { path: [], message: 'must be a map of settings' };
  if (mismatch !== undefined)
    return refuse(new Lines().of(text, mismatch.path), `${printPath(mismatch.path)} ${mismatch.message}`.trimStart());
  const { proxy } = value as { readonly proxy: Json };
  for (const [name, reader] of Object.entries(textReaders)) {
    const given = proxy[name];
    const read = typeof given === 'string' ? reader(given) : {};
    if ('wrong' in read) refuse(new Lines().of(text, ['proxy', name]), `proxy.${name}: ${read.wrong}`);
  }
  return value as Json;
}

/** Of settings whose shape has been checked. */
function configOf(
  settings: Json,
  defaultTemplates: readonly string[],
  templates: ReadonlyMap<string, Template>,
): InjectionConfig {
  const of = <T>(name: string, fallback: T): T => (settings[name] as T | null | undefined) ?? fallback;
  return {
    rules: {
      revision: of('revision', ''),
      tags: of<string[]>('tags', []),
      policy: of('policy', 'enabled'),
      enableNamespacesByDefault: of('enableNamespacesByDefault', false),
      neverInject: of<LabelSelector[]>('neverInjectSelector', []),
      alwaysInject: of<LabelSelector[]>('alwaysInjectSelector', []),
    },
    defaultTemplates,
    nativeSidecars: of('nativeSidecars', false),
    rewriteProbes: of('rewriteProbes', true),
    proxy: {
      ...proxyDefaults,
      ...(Object.fromEntries(
        Object.entries(settings['proxy'] as Json).filter(([, value]) => value !== null),
      ) as Partial<ProxySettings> & Pick<ProxySettings, 'image' | 'discoveryAddress'>),
    },
    templates,
  };
}

const textReaders: Readonly<Record<string, (text: string) => object>> = {
  includeOutboundIPRanges: readRangesOrAll,
  excludeOutboundIPRanges: readRanges,
  includeInboundPorts: readPortsOrAll,
  excludeInboundPorts: readPorts,
  includeOutboundPorts: readPorts,
  excludeOutboundPorts: readPorts,
  agentLogLevel: (text) => (text === '' ? {} : readAgentLevel(text)),
};

const proxyDefaults = {
  imageTypes: {},
  imagePullSecrets: [],
  resources: {},
  initResources: {},
  readinessPeriodSeconds: 15,
  readinessFailureThreshold: 4,
  startupProbe: { enabled: true, failureThreshold: 600 },
  lifecycle: {},
  command: ['node', '/app/dist/main.js'],
  clusterId: 'Kubernetes',
  domainSuffix: 'cluster.local',
  includeOutboundIPRanges: '*',
  excludeOutboundIPRanges: '',
  includeInboundPorts: '*',
  excludeInboundPorts: '',
  includeOutboundPorts: '',
  excludeOutboundPorts: '',
} satisfies Partial<ProxySettings>;
