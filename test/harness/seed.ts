import fc from 'fast-check';

/** Seed of the histories and worlds in property tests: the same for each run, so that results are reproducible. */
export const seed = Number(process.env['FAIRLEAD_SEED'] ?? 1);

// A setup file for all tests. Failures are printed with their seed and path.
fc.configureGlobal({ seed });
