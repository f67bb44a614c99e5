import fc from 'fast-check';
import { runs } from '../../src/testing/runs.ts';

/** Seed of the histories and worlds in property tests: the same for each run, so that results are reproducible. */
export const seed = Number(process.env['FAIRLEAD_SEED'] ?? 1);

/** Of fast-check, where a test asks for no other number. */
const RUNS = 100;

// A setup file for all tests. Failures are printed with their seed and path.
fc.configureGlobal({ seed, numRuns: runs(RUNS) });
