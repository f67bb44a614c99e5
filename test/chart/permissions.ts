/** One thing that an account may do. */
export interface Permission {
  readonly verb: string;
  readonly group: string;
  /** With the subresource: `virtualservices/status`. */
  readonly resource: string;
  /** Absent: in all namespaces, and on what has none. */
  readonly namespace?: string;
  /** Absent: whatever its name is. */
  readonly name?: string;
}

/** The part of Role and ClusterRole that is of interest. */
interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[];
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly nonResourceURLs?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

interface Binding extends Role {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace: string }[];
}

/** What these objects let a ServiceAccount do, rule by rule taken apart. */
export function permissionsOf(objects: readonly unknown[], account: string, namespace: string): Permission[] {
  const all = objects as readonly (Role | Binding)[];
  const bindings = all.filter((object): object is Binding => object.kind.endsWith('RoleBinding'));
  return bindings
    .filter(({ subjects }) =>
      subjects.some((s) => s.kind === 'ServiceAccount' && s.name === account && s.namespace === namespace),
    )
    .flatMap((binding) => {
      const { kind, name } = binding.roleRef;
      const scope = binding.kind === 'RoleBinding' ? { namespace: binding.metadata.namespace ?? '' } : {};
      const role = all.find(
        (object) =>
          object.kind === kind &&
          object.metadata.name === name &&
          (kind === 'ClusterRole' || object.metadata.namespace === binding.metadata.namespace),
      );
      if (role === undefined) throw new Error(`${binding.metadata.name} binds ${kind} ${name}, which does not exist`);
      return (role.rules ?? []).flatMap(({ apiGroups = [], resources = [], resourceNames, verbs, nonResourceURLs }) => {
        if (nonResourceURLs !== undefined) throw new Error(`${name} grants ${nonResourceURLs.join()}`);
        return apiGroups.flatMap((group) =>
          resources.flatMap((resource) =>
            verbs.flatMap((verb) =>
              (resourceNames ?? [undefined]).map((object) => ({
                ...{ verb, group, resource },
                ...scope,
                ...(object === undefined ? {} : { name: object }),
              })),
            ),
          ),
        );
      });
    });
}

export function covers(permission: Permission, request: Permission): boolean {
  const { verb, group, resource, namespace, name } = permission;
  return (
    verb === request.verb &&
    group === request.group &&
    resource === request.resource &&
    (namespace === undefined || namespace === request.namespace) &&
    (name === undefined || name === request.name)
  );
}

/** `list networking.istio.io/virtualservices`, `get coordination.k8s.io/leases istio-system/fairlead` */
export function printPermission({ verb, group, resource, namespace, name }: Permission): string {
  const place = namespace === undefined ? name : `${namespace}/${name ?? '*'}`;
  return [verb, `${group}/${resource}`, place].filter((part) => part !== undefined).join(' ');
}
