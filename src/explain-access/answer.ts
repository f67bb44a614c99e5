import type { ObjectRef } from '../api/object.ts';
import type { AccessAnswer } from '../cli/program.ts';
import type { Locate } from '../directory/load.ts';
import { printSource } from '../commands/explain.ts';
import type { Source } from '../model/provenance.ts';
import type { AccessEvent, Denial, Judgement } from '../judge/judge.ts';

export function answerOf({ verdict }: Judgement, locate: Locate): Omit<AccessAnswer, 'remarks' | 'findings'> {
  const print = (source: Source | undefined): readonly string[] => (source ? [printSource(source, locate)] : []);
  switch (verdict.kind) {
    case 'allowed': {
      const reason = verdict.by === undefined ? 'no policy denies it' : 'a rule allows it, and none denies it';
      return { verdict: 'allowed', reason, by: print(verdict.by) };
    }
    case 'unknown':
      return { verdict: 'unknown', reason: `it depends on ${verdict.dependsOn}`, by: [] };
    case 'denied': {
      const { answer, why } = verdict;
      const by =
        why.kind === 'notAllowed'
          ? why.policies.flatMap((object) => print(whole(object)))
          : print('by' in why ? why.by : undefined);
      return { verdict: 'denied', answer, reason: printDenial(why), by };
    }
  }
}

const whole = (object: ObjectRef): Source => ({ object, field: 'spec.rules' });

function printDenial(why: Denial): string {
  switch (why.kind) {
    case 'rule':
      return 'a rule denies it';
    case 'provider':
      return 'a CUSTOM rule matches, but its extension provider cannot be asked';
    case 'notAllowed':
      return why.policies.length === 0
        ? 'the policies are too large for a listener, so nothing is allowed'
        : 'no rule of the ALLOW policies matches';
    case 'token':
      return why.reason;
    case 'plaintext':
      return 'the port accepts only mutual TLS, and the request is in plaintext';
    case 'mutualTls':
      return 'the port does not accept mutual TLS';
    case 'trustDomain':
      return "the client's trust domain is neither that of the mesh nor one of its aliases";
    case 'serverName':
      return 'no server of the port takes the server name in the TLS handshake, which is taken from --host';
    case 'meshCertificate':
      return 'the server requires a certificate of the mesh, and the request has no identity (--from)';
    case 'port':
      return 'the workload does not accept connections on the port';
  }
}

export function printEvent(event: AccessEvent, locate: Locate): string {
  const by = event.by === undefined ? '' : `: ${printSource(event.by, locate)}`;
  switch (event.kind) {
    case 'asks':
      return `asks the extension provider ${event.provider}, which may deny it${by}`;
    case 'audit':
      return `is audited${by}`;
    case 'dryRun':
      return `a dry run ${event.answer} it${by}`;
  }
}
