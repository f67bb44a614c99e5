import { type LabelRequirement, type LabelSelector, labelOperators } from '../../model/label-selector.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';

/**
 * Which namespaces are of the mesh: those that one of the selectors matches. None, or a mistake in one of them: all
 * namespaces.
 */
export function readDiscoverySelectors(field: Field): readonly LabelSelector[] {
  const before = field.findings.invalidValues;
  const selectors = field.objects().map((selector): LabelSelector => ({
    matchLabels: selector.get('matchLabels').stringMap(),
    matchExpressions: selector.get('matchExpressions').objects().map(requirement),
  }));
  return field.findings.invalidValues > before ? [] : selectors;
}

function requirement(field: Field): LabelRequirement {
  const [key, text, values] = [field.get('key'), field.get('operator').string(), field.get('values')];
  const operator = labelOperators.find((each) => each === text) ?? 'Exists';
  const takesValues = operator === 'In' || operator === 'NotIn';
  if (key.string() === '') key.invalid('is not set; name a label.');
  if (operator !== text) field.get('operator').invalid(`${quote(text)} is not one of ${labelOperators.join(', ')}.`);
  else if (takesValues && values.list().length === 0) values.invalid(`must not be empty with ${operator}.`);
  else if (!takesValues && values.list().length > 0) values.invalid(`must be empty with ${operator}.`);
  return { key: key.string(), operator, values: values.strings() };
}
