/** What is wrong with a file of the injection directory. Lines count from 1; 0: the file as a whole. */
export interface FileProblem {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}
