import { readFile } from 'node:fs/promises';
import type { Permission } from '../chart/permissions.ts';

/** A request that the API server has answered. */
export interface AuditedRequest extends Permission {
  readonly code: number;
  readonly uri: string;
  /** When it was answered, in milliseconds. */
  readonly time: number;
}

/** What the API server writes down of the requests of one user. */
export class AuditLog {
  readonly policy: string;
  private readonly file: string;

  constructor(file: string, user: string) {
    this.file = file;
    this.policy = JSON.stringify({
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived'],
      rules: [{ level: 'Metadata', users: [user] }, { level: 'None' }],
    });
  }

  /** Of kube-apiserver. An answer is in the log before it is sent. */
  args(policyFile: string): string[] {
    return [`--audit-policy-file=${policyFile}`, `--audit-log-path=${this.file}`, '--audit-log-mode=blocking'];
  }

  /** In the order of the answers; requests that are about no resource, like those of discovery, are left out. */
  async requests(): Promise<AuditedRequest[]> {
    const lines = (await readFile(this.file, 'utf8')).split('\n').filter((line) => line !== '');
    return lines.flatMap((line) => {
      const { verb, objectRef, responseStatus, requestURI, stageTimestamp } = JSON.parse(line) as AuditEvent;
      if (objectRef?.resource === undefined) return [];
      const { apiGroup = '', resource, subresource, namespace, name } = objectRef;
      return [
        {
          verb,
          group: apiGroup,
          resource: subresource === undefined ? resource : `${resource}/${subresource}`,
          ...(namespace === undefined ? {} : { namespace }),
          ...(name === undefined ? {} : { name }),
          code: responseStatus?.code ?? 0,
          uri: requestURI,
          time: Date.parse(stageTimestamp),
        },
      ];
    });
  }
}

interface AuditEvent {
  readonly verb: string;
  readonly requestURI: string;
  readonly stageTimestamp: string;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
}
