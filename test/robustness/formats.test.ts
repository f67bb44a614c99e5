import { expect, test } from 'vitest';
import { problemOfFormat } from '../../src/reconcilers/virtual-service/header-format.ts';
import { reconcileMeshConfig } from '../../src/reconcilers/mesh-config/mesh-config.ts';
import { withPeers } from '../peers/with-peers.ts';
import { formatVerdicts } from './format-verdicts.ts';
import { oddFormats, oddFormatsOf } from './formats.ts';

/** What Envoy takes and we do not, on purpose. */
const refusedAllTheSame: readonly (readonly [why: string, RegExp])[] = [
  ['expressions cannot be judged here', /^%(TYPED_)?CEL\(/],
  ['means nothing to a route, or is for builds of Envoy for others', /^%(PER_REQUEST_STATE|STREAM_INFO_REQ)\(/],
  ['the argument of a name is empty', /FILTER_STATE\([A-Za-z?_]*:\)/],
  ['half an argument', /^%(PATH|REQUESTED_SERVER_NAME)\(.*:.*\)/],
  ['points in time that nobody defines', /^%COMMON_DURATION\(/],
  ['a length that no value has', /:9{10,}%/],
  ['metadata that we never write', /^%METADATA\(LISTENER_FILTER_CHAIN:/],
];

withPeers(['envoy'], 'a real Envoy takes every format that we do', () => {
  test('in a header', async () => {
    const formats = oddFormats();
    const verdicts: string[] = [];
    // It looks for clashes of each listener with each other.
    for (let at = 0; at < formats.length; at += 500)
      verdicts.push(...(await formatVerdicts(formats.slice(at, at + 500), 'header')));
    const judged = formats.map((format, i) => ({ format, envoy: verdicts[i], ours: problemOfFormat(format, true) }));
    expect(judged.filter(({ envoy, ours }) => ours === undefined && envoy !== '')).toEqual([]);
    const stricter = judged.filter(({ envoy, ours }) => ours !== undefined && envoy === '').map(({ format }) => format);
    expect(stricter.filter((format) => !refusedAllTheSame.some(([, form]) => form.test(format)))).toEqual([]);
    expect(judged.filter(({ envoy }) => envoy === '').length).toBeGreaterThan(300);
  }, 120_000);

  test('in a log', async () => {
    const formats = ['REQ', 'REQ_WITHOUT_QUERY', 'START_TIME', 'CEL', 'FOO'].flatMap(oddFormatsOf);
    const verdicts = await formatVerdicts(formats, 'log');
    const used = (format: string) =>
      reconcileMeshConfig(JSON.stringify({ accessLogFormat: format })).config.listeners.accessLogFormat !== '';
    expect(formats.filter((format, i) => verdicts[i] !== '' && used(format))).toEqual([]);
  });
});
