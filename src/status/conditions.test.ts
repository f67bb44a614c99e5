import { expect, it } from 'vitest';
import type { Problem, ProblemReason } from '../api/problem.ts';
import { conditionsOf } from './conditions.ts';

const object = { source: 'c', group: 'networking.istio.io', kind: 'VirtualService', namespace: 'n', name: 'v' };
const problem = (reason: ProblemReason, field: string): Problem => ({ object, field, reason, message: 'Mend it.' });

const cases: { name: string; problems: Problem[]; accepted: string; resolved: string }[] = [
  { name: 'nothing is wrong', problems: [], accepted: 'True Accepted', resolved: 'True ResolvedRefs' },
  {
    name: 'a field is invalid',
    problems: [problem('Invalid', 'spec.a')],
    accepted: 'False Invalid',
    resolved: 'True ResolvedRefs',
  },
  {
    name: 'a conflict was lost',
    problems: [problem('Conflicted', 'spec.hosts')],
    accepted: 'False Conflicted',
    resolved: 'True ResolvedRefs',
  },
  {
    name: 'a host is missing',
    problems: [problem('RefNotFound', 'spec.b')],
    accepted: 'True Accepted',
    resolved: 'False RefNotFound',
  },
  {
    name: 'a value has no effect',
    problems: [problem('Ineffective', 'spec.c')],
    accepted: 'True Ineffective',
    resolved: 'True ResolvedRefs',
  },
  {
    name: 'a field and a value have no effect',
    problems: [problem('Ineffective', 'spec.c'), problem('UnsupportedField', 'spec.d')],
    accepted: 'True UnsupportedField',
    resolved: 'True ResolvedRefs',
  },
  {
    name: 'a value is too broad',
    problems: [problem('TooBroad', 'spec.c')],
    accepted: 'True TooBroad',
    resolved: 'True ResolvedRefs',
  },
  {
    name: 'a field is not supported',
    problems: [problem('UnsupportedField', 'spec.c')],
    accepted: 'True UnsupportedField',
    resolved: 'True ResolvedRefs',
  },
];

for (const { name, problems, accepted, resolved } of cases)
  it(`says so when ${name}, by field path and generation`, () => {
    const conditions = conditionsOf(7, problems);
    expect(conditions.map((c) => `${c.type} ${c.status} ${c.reason} ${c.observedGeneration}`)).toEqual([
      `Accepted ${accepted} 7`,
      `ResolvedRefs ${resolved} 7`,
    ]);
    for (const { field } of problems) expect(conditions.map((c) => c.message).join()).toContain(`${field}: Mend it.`);
  });

it('says what is wrong with the object as a whole without a field', () => {
  expect(conditionsOf(1, [problem('InternalError', '')])[0]?.message).toBe('Mend it.');
});

it('counts the findings that it does not name', () => {
  const many = Array.from({ length: 12 }, (_, i) => problem('Invalid', `spec.x[${i}]`));
  expect(conditionsOf(1, many)[0]?.message).toMatch(/spec\.x\[4\].* And 7 more\.$/);
});
