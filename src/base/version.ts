import manifest from '../../package.json' with { type: 'json' };

/** Version of Fairlead, as in package.json. */
export const version: string = manifest.version;
