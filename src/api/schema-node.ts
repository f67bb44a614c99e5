/** A part of a schema. A CRD can express all of it except `$ref` and `x-exclusive` (see tools/api/source.ts). */
export interface SchemaNode {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly additionalProperties?: SchemaNode;
  readonly 'x-exclusive'?: readonly (readonly string[])[];
  readonly 'x-kubernetes-validations'?: readonly Rule[];
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

/** `rule` is CEL; the API server evaluates it, and `validate-rules.ts` has its equivalent. */
export interface Rule {
  readonly rule: string;
  readonly message: string;
}
