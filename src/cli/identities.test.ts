import { expect, test } from 'vitest';
import { printIdentities } from './identities.ts';

const db = {
  ...{
    cluster: 'east',
    id: 131_073,
    namespace: 'shop',
    pod: 'db-0',
    serviceAccount: 'db',
    host: '192.168.0.1',
    node: 'n1',
  },
  labels: { 'k8s:version': 'v1', 'k8s:app': 'db' },
};

test('whoever has the address is shown with the labels of the identity', () => {
  const node = { cluster: 'west', id: 6, namespace: '', pod: '', serviceAccount: '', host: '192.168.0.2', node: '' };
  expect(printIdentities([{ address: 'a', report: [db, node] }])).toBe(
    [
      'CLUSTER  IDENTITY  POD        ACCOUNT  NODE         LABELS\n',
      'east     131073    shop/db-0  db       n1           k8s:app=db,k8s:version=v1\n',
      'west     6         -          -        192.168.0.2  -\n',
    ].join(''),
  );
});

test('several replicas speak for themselves, and those that do not answer say nothing', () => {
  const report = [db];
  const text = printIdentities([
    { address: 'a', report },
    { address: 'b', report },
    { address: 'c', failure: 'away' },
  ]);
  expect(text.match(/ (REPLICA|a|b|c)$/gm)).toEqual([' REPLICA', ' a', ' b']);
  expect(printIdentities([{ address: 'a', report: [] }])).toBe('No cluster knows this address.\n');
  expect(printIdentities([{ address: 'c', failure: 'away' }])).toBe('');
});
