import { withoutNulls } from '../api/json.ts';
import type { Kind, KindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import { validateCore } from '../api/validate-core.ts';
import { isTimestamp, validateMetadata } from '../api/validate-metadata.ts';
import { sizeOf } from './budget.ts';
import type { Shape } from './told.ts';

/** No API server stores an object that is larger: etcd takes no more. Bytes. */
const LARGEST = 1_500_000;

/** For what a server sends that others run: refuses objects that an API server would not have stored. */
export function checked(kind: Kind<KindName>, shape: Shape): Shape {
  return {
    same: (a, b) => shape.same(a, b),
    trim(raw, version) {
      const object = withoutNulls(shape.trim(raw, version)) as KubernetesObject;
      if (sizeOf(object) > LARGEST || !isStored(kind, object)) throw new Error('not an object of an API server');
      return object;
    },
  };
}

function isStored(kind: Kind<KindName>, object: KubernetesObject): boolean {
  const { namespace = '', uid, deletionTimestamp, ownerReferences = [] } = object.metadata as Unchecked;
  if (kind.namespaced === (namespace === '')) return false;
  if (uid !== undefined && typeof uid !== 'string') return false;
  if (deletionTimestamp !== undefined && !isTimestamp(deletionTimestamp)) return false;
  if (ownerReferences.some((owner) => typeof owner['kind'] !== 'string' || typeof owner['name'] !== 'string'))
    return false;
  // What custom kinds contain is checked where it is read.
  const findings = kind.custom ? [] : validateCore({ ...object }, kind.name as Parameters<typeof validateCore>[1]);
  return findings.length === 0 && validateMetadata(object.metadata, kind).length === 0;
}

interface Unchecked {
  readonly namespace?: unknown;
  readonly uid?: unknown;
  readonly deletionTimestamp?: unknown;
  readonly ownerReferences?: readonly Readonly<Record<string, unknown>>[];
}
