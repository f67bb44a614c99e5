import type { Json } from '../api/json.ts';
import type { ProxyConfigsOfPod } from '../model/proxy-config.ts';
import type { Workload } from './workload.ts';

/** One admission, or one Pod of a file. */
export interface InjectionRequest {
  /** As the API server sends it: the name may be absent (`generateName`), the namespace too. Not changed. */
  readonly pod: Json;
  readonly namespace: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  /** The mesh config as users write it, parsed; `{}`: none. */
  readonly meshConfig: Json;
  /** The ProxyConfigs for a Pod of the namespace with these labels; absent: none. */
  readonly proxyConfigsOf?: (labels: Readonly<Record<string, string>>) => ProxyConfigsOfPod;
  /** What the URL of the webhook says (`/inject/cluster/C/net/N/KEY/VALUE`); keys of `env` in upper case. */
  readonly parameters: {
    readonly cluster?: string;
    readonly network?: string;
    readonly env: Readonly<Record<string, string>>;
  };
  /** What the Pod is one of, if its owner does not say so: it is a template of a file. */
  readonly workload?: Workload;
}

/** Warnings are sentences for the user. */
export type InjectionResult =
  | { readonly pod: Json; readonly warnings: readonly string[] }
  /** Allowed as it is; the reason is for logs and for whoever asks. Warnings say what the user may not expect. */
  | {
      readonly untouched: string;
      readonly warnings: readonly string[];
      /** No label of the Pod or of its namespace asks for a sidecar of this control plane. */
      readonly unselected?: true;
    }
  /** Not admitted: what is wrong, where, and what to write instead. */
  | { readonly refused: string };
