import type { Json } from '../api/json.ts';
import { type KindName, kinds } from '../api/kinds.ts';
import { objectKey } from '../api/object.ts';
import { printPath } from '../api/schema-path.ts';
import type { Validate } from '../api/validate.ts';
import { Graph } from '../cache/graph.ts';
import type { MeshSettings } from '../config/config.ts';
import { readValue } from '../directory/objects.ts';
import type { FileReport } from '../directory/report.ts';
import { Encoder } from '../envoy/encode/encoder.ts';
import type { Protos } from '../envoy/encode/proto.ts';
import { buildMesh } from '../mesh.ts';
import { ONE } from '../mesh/inputs.ts';
import { findingsOf } from './offline.ts';
import type { CheckObject } from '../webhooks/validating.ts';

/**
 * What `fairlead check` says about a file with one object and nothing else. The mesh is built once and stays empty:
 * each object is a draft of it, which is discarded. Throws if a bug of ours keeps it from a verdict.
 */
export function createObjectCheck(settings: MeshSettings, protos: Protos, validate: Validate): CheckObject {
  const graph = new Graph();
  const mesh = buildMesh(graph, new Encoder(protos, {}));
  const source = settings.clusterId;
  graph.commit([mesh.inputs.options.write(ONE, { ...settings, assumesCredentials: true })]);
  return (object) => {
    const { objects, findings } = readValue(object, validate);
    const reports: FileReport[] = findings.map(({ severity, path, message }) => ({
      severity,
      file: '',
      field: printPath(path),
      message,
    }));
    const writes = objects.flatMap(({ kind, namespace, name, errors, object: usable, failsClosed }) => {
      const ref = { group: kind.group, kind: kind.kind, namespace, name };
      for (const { severity, path, message } of errors)
        reports.push({ severity, file: '', object: ref, field: printPath(path), message });
      const read = usable ?? failsClosed;
      if (read === undefined || !isCustom(kind.name)) return [];
      const { status: _, ...content } = read as typeof read & Json;
      return mesh.inputs.objects[kind.name].write(objectKey(source, namespace, name), content);
    });
    const draft = graph.draft(writes);
    try {
      for (const { error } of graph.failures.values()) throw error;
      return findingsOf({ reports, locate: () => undefined }, mesh, false);
    } finally {
      draft.discard();
    }
  };
}

function isCustom(name: string): name is KindName {
  return kinds.some((kind) => kind.name === name && kind.custom);
}
