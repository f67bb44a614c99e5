/** The word with `a` or `an` before it, by its first letter: `an AuthorizationPolicy`, `a "Service"`. */
export function withArticle(word: string): string {
  return `${/^"?[aeiou]/i.test(word) ? 'an' : 'a'} ${word}`;
}
