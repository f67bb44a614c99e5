import { type Identity, isTimestamp } from '../api/validate-metadata.ts';
import { isObject, type Json } from '../api/json.ts';
import { isMeshAnnotation } from '../api/object.ts';

/** The metadata that Fairlead reads, of a valid object; uid and generation come from the source. */
export function trimMetadata(identity: Identity, raw: Json): Json {
  const { labels, annotations, creationTimestamp, deletionTimestamp, ownerReferences } = raw;
  const kept = isObject(annotations)
    ? Object.fromEntries(Object.entries(annotations).filter(([key]) => isMeshAnnotation(key)))
    : {};
  return {
    name: identity.name,
    ...(identity.namespace === '' ? {} : { namespace: identity.namespace }),
    ...(isTimestamp(creationTimestamp) ? { creationTimestamp } : {}),
    ...(isTimestamp(deletionTimestamp) ? { deletionTimestamp } : {}),
    ...(isObject(labels) && Object.keys(labels).length > 0 ? { labels } : {}),
    ...(Object.keys(kept).length > 0 ? { annotations: kept } : {}),
    ...(Array.isArray(ownerReferences) ? { ownerReferences: ownerReferences.filter(isObject) } : {}),
  };
}
