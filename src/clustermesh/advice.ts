import type { EtcdError, EtcdReason } from '../etcd/error.ts';

/** Why a cluster of the mesh is not read, and what to do. */
export interface MeshFailure {
  readonly reason: string;
  /** What someone can do. */
  readonly next: string;
}

const nextSteps: Readonly<Record<EtcdReason, string>> = {
  Misconfigured: 'correct the endpoints in its configuration file',
  NoCredentials: 'provide the file; it is read again with each attempt',
  Unavailable: 'check that its clustermesh-apiserver runs, and can be reached from here',
  Timeout: 'check that its clustermesh-apiserver runs, and that nothing on the way drops packets',
  PermissionDenied: 'have its etcd grant this to the user that the client certificate names',
  NotFound: 'no action needed; it is retried',
  Compacted: 'no action needed; it is listed again',
  TooLarge: 'have the owner make the value smaller',
  Malformed: 'check what answers at its endpoints',
  OtherCluster: 'no action needed; it is read again',
  WentBack: 'no action needed; it is read again',
  Refused: 'look at the log of its etcd',
  InternalError: 'report this as a bug',
  Closed: 'no action needed; it is retried',
};

export function failureOf(error: EtcdError): MeshFailure {
  const { reason, message } = error;
  const isAboutCertificate = /certificate|altname|self-signed|tls|ssl/i.test(message);
  const next =
    reason === 'Unavailable' && isAboutCertificate
      ? 'check the certificates: each side must trust the authority of the other, and the name must be in that of the server'
      : nextSteps[reason];
  return { reason: message, next };
}

export function printFailure({ reason, next }: MeshFailure): string {
  return `${reason} (${next})`;
}
