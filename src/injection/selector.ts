/** A label selector, with Kubernetes' fields. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelRequirement[];
}

interface LabelRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

export const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;

/** A selector without requirements matches nothing: here it would be a mistake. */
export function matches(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const wanted = Object.entries(matchLabels);
  if (wanted.length + matchExpressions.length === 0) return false;
  return (
    wanted.every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((requirement) => isMet(requirement, labels[requirement.key]))
  );
}

function isMet({ operator, values = [] }: LabelRequirement, label: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label);
    case 'NotIn':
      return label === undefined || !values.includes(label);
    case 'Exists':
      return label !== undefined;
    default:
      return label === undefined;
  }
}
