/** What is known of files besides what is in them. */
export interface FileContext {
  /** Of the objects. */
  readonly source: string;
  readonly rootNamespace: string;
  /** What is not in the files does not exist. */
  readonly complete: boolean;
}
