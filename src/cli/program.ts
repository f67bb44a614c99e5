import type { ConnectedProxy } from '../ads/types.ts';
import type { Config, MeshSettings } from '../config/config.ts';
import type { ServedType } from '../served-types.ts';

/**
 * What the commands do, as the composition root provides it. A mistake that the person at the command line can mend is
 * thrown as an error with one of the codes of `explainedCodes`; any other error is a bug and is printed with its stack.
 */
export interface Program {
  /** Serves until the signal fires, and settles when everything is closed. Rejects when it cannot start. */
  serve(config: Config, signal: AbortSignal): Promise<void>;
  /** What is wrong with the objects in files. */
  check(request: CheckRequest): Promise<CheckResult>;
  /** What a proxy would be given for the objects in files. */
  translate(request: TranslateRequest): Promise<Translation>;
}

/** Codes of errors whose message is all that is to be said: what is wrong, and where. */
export const explainedCodes: ReadonlySet<string> = new Set(['CONFIG', 'DIRECTORY', 'KUBECONFIG', 'LISTEN', 'USAGE']);

export interface CheckRequest {
  /** Directories or files. */
  readonly paths: readonly string[];
  /** The files are all there is: a reference that leads outside them is an error, not a warning. */
  readonly complete: boolean;
  readonly mesh: MeshSettings;
}

export interface CheckResult {
  /** In the order in which they are printed. */
  readonly findings: readonly Finding[];
  /** Number of objects that were looked at. */
  readonly objects: number;
  /** Number of objects of kinds that Fairlead does not know. */
  readonly ignored: number;
}

/** One thing to tell about the files: a report of the directory, or a Problem with its place. */
export interface Finding {
  readonly severity: 'error' | 'warning';
  readonly file?: string;
  readonly line?: number;
  /** Absent when it is about a file, or a document that is not an object. */
  readonly object?: { readonly kind: string; readonly namespace: string; readonly name: string };
  /** Empty for the object, document or file as a whole. */
  readonly field: string;
  /** A ProblemReason, or `Unreadable` for what stands in the files. */
  readonly reason: string;
  readonly message: string;
}

/** A proxy as its node describes it. */
export type ProxyNode = Omit<ConnectedProxy, 'stream'>;

export interface TranslateRequest {
  readonly paths: readonly string[];
  readonly proxy: ProxyNode;
  readonly mesh: MeshSettings;
  /** Say what everything was made from. */
  readonly explain?: boolean;
}

export interface Translation {
  /** Protobuf JSON with `@type`, in the order in which a server would send them. EDS, RDS and SDS: all that CDS and LDS name. */
  readonly resources: Readonly<Record<ServedType, readonly ResourceJson[]>>;
  /** What these were made from, when that was asked for. */
  readonly explained?: Readonly<Record<ServedType, readonly ExplainedResource[]>>;
  /** What is wrong with what stands in the files. What has errors is left out, as a server would. */
  readonly findings: readonly Finding[];
  /** Why the proxy is given nothing: a server would refuse it. */
  readonly refusal?: string;
  /** Why it is given nothing, although a server would serve it. */
  readonly remark?: string;
}

/** Places as `FILE:LINE: KIND/NAMESPACE/NAME: FIELD`. Empty where no single object accounts for it. */
export interface ExplainedResource {
  readonly name: string;
  readonly from?: readonly string[];
  /** Of a route table. */
  readonly virtualHosts?: readonly ExplainedVirtualHost[];
}

export interface ExplainedVirtualHost {
  readonly name: string;
  /** What gave it its names. */
  readonly from: readonly string[];
  readonly routes: readonly {
    readonly name?: string;
    /** As protobuf JSON. */
    readonly match: object;
    readonly from: readonly string[];
  }[];
}

export type ResourceJson = Readonly<Record<string, unknown>> & { readonly '@type': string };
