import type { Labels } from './labels.ts';
import { ownValue } from './own-value.ts';

/** Kubernetes' label selector. */
export interface LabelSelector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly LabelRequirement[];
}

export interface LabelRequirement {
  readonly key: string;
  readonly operator: (typeof labelOperators)[number];
  readonly values?: readonly string[];
}

export const labelOperators = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;

/** Without requirements, it matches everything. */
export function matchesLabels({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => ownValue(labels, key) === value) &&
    matchExpressions.every((requirement) => isMet(requirement, ownValue(labels, requirement.key)))
  );
}

/** A label that is absent is in no set. */
function isMet({ operator, values = [] }: LabelRequirement, label: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label);
    case 'NotIn':
      return label === undefined || !values.includes(label);
    case 'Exists':
      return label !== undefined;
    case 'DoesNotExist':
      return label === undefined;
  }
}
