import { expect, test } from 'vitest';
import type { JwtIssuer, JwtRule } from '../../model/request-authentication.ts';
import type { HttpHeaderMutation } from '../gen/types.gen.ts';
import { withoutClaimHeaders } from './claim-headers.ts';

const issuer = (rule: Partial<JwtRule>) =>
  ({ rule: { outputPayloadToHeader: '', outputClaimToHeaders: [], ...rule } }) as unknown as JwtIssuer;

const removed = (...rules: Partial<JwtRule>[]): readonly RegExp[] =>
  withoutClaimHeaders(rules.map(issuer), { agent: true }).flatMap(({ typedConfig }) => {
    const { mutations } = typedConfig!.value as HttpHeaderMutation;
    return mutations!.requestMutations!.map(
      ({ removeOnMatch }) => new RegExp(`^(?:${removeOnMatch!.keyMatcher!.safeRegex!.regex})$`),
    );
  });

test('without headers to write, nothing is removed', () => {
  expect(removed({})).toEqual([]);
});

test('each spelling of a header is removed, and no other header', () => {
  const patterns = removed(
    { outputPayloadToHeader: 'X-JWT.Payload' },
    { outputClaimToHeaders: [{ header: 'x-user-id', claim: 'sub' }] },
    { outputClaimToHeaders: [{ header: 'X-User-Id', claim: 'sub' }] },
  );
  expect(patterns).toHaveLength(2);
  const names = ['x-user-id', 'x_user-id', 'x-user_id', 'x_user_id', 'x_jwt.payload'];
  const others = ['x-user', 'x-user-id-2', 'xuserid', 'x-jwtapayload'];
  expect([...names, ...others].filter((name) => patterns.some((pattern) => pattern.test(name)))).toEqual(names);
});
