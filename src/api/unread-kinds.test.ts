import { expect, test } from 'vitest';
import { remarkOn } from './unread-kinds.ts';

test('kinds of an old Istio are told, with what they have become; those of others are not', () => {
  expect(remarkOn('rbac.istio.io/v1alpha1', 'ServiceRole')).toEqual({
    severity: 'warning',
    field: 'kind',
    message:
      'ServiceRole is a kind of an old Istio, and has no effect: it keeps nobody out; use an AuthorizationPolicy',
  });
  expect(remarkOn('authentication.istio.io/v1alpha1', 'Policy')?.message).toContain('use a PeerAuthentication');
  expect(remarkOn('config.istio.io/v1alpha2', 'handler')?.message).toContain('no Mixer');
  expect(remarkOn('rbac.example.com/v1', 'ServiceRole')).toBeUndefined();
});

test('the experimental group of the Gateway API is known as such', () => {
  expect(remarkOn('gateway.networking.x-k8s.io/v1alpha1', 'XListenerSet')).toEqual({
    severity: 'warning',
    field: 'apiVersion',
    message: 'Fairlead does not read XListenerSet, nor what else is experimental in the Gateway API',
  });
  expect(remarkOn('gateway.networking.x-k8s.oi/v1alpha1', 'XListenerSet')?.message).not.toContain('experimental');
});
