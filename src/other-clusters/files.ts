import { join } from 'node:path';
import { LONGEST_KUBECONFIG } from '../clusters/kubeconfig.ts';
import type { Kubeconfigs, OwnerContent } from '../clusters/kubeconfigs.ts';
import { MOST_CLUSTERS } from '../clusters/owned-clusters.ts';
import { type FileText, type FolderContent, followFolder } from '../directory/folder.ts';
import type { KubeconfigSource } from './kubeconfig-source.ts';

export interface RemoteKubeconfigsOptions {
  readonly directory: string;
  readonly kubeconfigs: Kubeconfigs;
  readonly signal: AbortSignal;
}

/** Kubeconfigs in files of a directory: the cluster is what the current context calls it, as in Istio. */
export function followRemoteKubeconfigs({
  directory,
  kubeconfigs,
  signal,
}: RemoteKubeconfigsOptions): KubeconfigSource {
  const events = { add: 0, update: 0, delete: 0 };
  let former: FolderContent['files'] = new Map();
  const folder = followFolder({
    path: directory,
    mostFiles: MOST_CLUSTERS,
    largestFile: LONGEST_KUBECONFIG,
    found(content) {
      for (const [name, text] of content.files) {
        const before = former.get(name);
        if (before === undefined) events.add++;
        else if (before !== text) events.update++;
      }
      for (const name of former.keys()) if (!content.files.has(name)) events.delete++;
      former = content.files;
      kubeconfigs.replace(contentsOf(directory, content));
    },
    signal,
  });
  return {
    known: folder.read,
    ended: folder.ended,
    waitingFor: () => [],
    events: () => events,
  };
}

function contentsOf(directory: string, { files, ignored, problem }: FolderContent): readonly OwnerContent[] {
  const of = (path: string): Pick<OwnerContent, 'owner' | 'created'> => ({
    owner: { kind: 'File', path },
    created: '',
  });
  return [
    ...Array.from(files, ([name, text]) => ({ ...of(join(directory, name)), ...kubeconfigIn(text) })),
    ...(problem === undefined
      ? []
      : [{ ...of(directory), kubeconfigs: [], problem: `cannot be read: ${problem}; what was known stays` }]),
    ...(ignored === 0 ? [] : [{ ...of(directory), kubeconfigs: [], ignored }]),
  ];
}

function kubeconfigIn(text: FileText): Pick<OwnerContent, 'kubeconfigs' | 'problem'> {
  return 'problem' in text
    ? { kubeconfigs: [], problem: text.problem }
    : { kubeconfigs: [{ text: text.text, encoding: 'utf8' }] };
}
