import { bool, choice, key, type Message, message, one, text } from '../../src/etcd/codec.ts';
import type { EtcdConnection } from '../../src/etcd/connection.ts';
import { type KeyRange, keysUnder, singleKey } from '../../src/etcd/keys.ts';
import { responseHeader } from '../../src/etcd/messages.ts';

/** Who may do what in the etcd of a ClusterMesh, as Cilium sets it up for the cluster of this name. */
export async function grantAsCilium(root: EtcdConnection, cluster: string): Promise<void> {
  const everything: KeyRange = { key: '\0', end: '\0' };
  // The role `root` is there from the beginning.
  await addUser(root, 'root', 'root');
  await addRole(root, `admin-${cluster}`, READWRITE, [everything]);
  await addRole(root, 'remote', READ, [
    keysUnder('cilium/.heartbeat'),
    keysUnder('cilium/state/'),
    singleKey(`cilium/cluster-config/${cluster}`),
    keysUnder(`cilium/synced/${cluster}/`),
  ]);
  await addRole(
    root,
    'local',
    READ,
    ['cilium/.heartbeat', 'cilium/cache/', 'cilium/cluster-config/', 'cilium/synced/'].map(keysUnder),
  );
  for (const user of [`admin-${cluster}`, 'remote', 'local']) await addUser(root, user, user);
  await call(root, 'AuthEnable', Buffer.alloc(0));
}

const READ = 0;
const READWRITE = 2;

/** Source: etcd's published API, `etcdserverpb.Auth` and `authpb`. */
const userAdd = message({ name: text(1), options: one(3, message({ noPassword: bool(1) })) });
const userGrantRole = message({ user: text(1), role: text(2) });
const roleAdd = message({ name: text(1) });
const roleGrantPermission = message({
  name: text(1),
  permission: one(2, message({ type: choice(1), key: key(2), rangeEnd: key(3) })),
});
const response = message({ header: one(1, responseHeader) });
const encoded: Message<unknown, Buffer> = { decode: () => undefined, encode: (value) => value };

async function addUser(root: EtcdConnection, name: string, role: string): Promise<void> {
  await call(root, 'UserAdd', userAdd.encode({ name, options: { noPassword: true } }));
  await call(root, 'UserGrantRole', userGrantRole.encode({ user: name, role }));
}

async function addRole(root: EtcdConnection, name: string, type: number, ranges: readonly KeyRange[]): Promise<void> {
  await call(root, 'RoleAdd', roleAdd.encode({ name }));
  for (const { key, end } of ranges) {
    const permission = { type, key, ...(end !== undefined && { rangeEnd: end }) };
    await call(root, 'RoleGrantPermission', roleGrantPermission.encode({ name, permission }));
  }
}

async function call(root: EtcdConnection, procedure: string, request: Buffer): Promise<void> {
  const { signal } = new AbortController();
  await root.call({ path: `/etcdserverpb.Auth/${procedure}`, request: encoded, response }, request, { signal });
}
