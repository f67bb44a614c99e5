import fc from 'fast-check';

/** Where the histories and worlds of property tests begin: the same for each run, so that a test ends as it did before. */
export const seed = Number(process.env['FAIRLEAD_SEED'] ?? 1);

// A setup file of all tests. What fails is printed with its seed and path.
fc.configureGlobal({ seed });
