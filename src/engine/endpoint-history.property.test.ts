import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import { LOST_MS } from './endpoint-history.ts';
import { EndpointLab, pod, service, slice } from './testing/endpoint-lab.ts';
import { runs } from '../testing/runs.ts';

/** One Pod of many, as the API server has it: some share an address one after the other. */
interface Pod {
  readonly uid: string;
  readonly ip: string;
  readonly ready: boolean;
  readonly app: string;
}

interface World {
  readonly pods: Map<string, Pod>;
  /** By name: the Service, and Pods as the slice has them. */
  readonly slices: Map<string, { readonly of: string; readonly endpoints: readonly Listed[] }>;
  readonly services: Map<string, { readonly uid: string; readonly releasedAt: number }>;
}

interface Listed {
  readonly pod: string;
  readonly ip: string;
  readonly uid: string;
  readonly ready: boolean;
}

interface Lost extends Listed {
  readonly at: number;
  readonly slice: string;
  readonly of: string;
}

type Kind = 'Pod' | 'EndpointSlice' | 'Service';

/** As every history begins: Pods with their addresses, and which Service selects them. */
const usual = { p1: ['10.1.0.1', 'reviews'], p2: ['10.1.0.2', 'reviews'], p3: ['10.1.0.3', 'ratings'] } as const;
type PodName = keyof typeof usual;
const podNames = fc.constantFrom<PodName>('p1', 'p2', 'p3');
const apps = fc.constantFrom('reviews', 'ratings');
const sliceNames = fc.constantFrom('s1', 's2', 's3');
/** Mostly false. */
const seldom = fc.nat(5).map((n) => n === 0);
const usually = seldom.map((isSeldom) => !isSeldom);
const change = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pod' as const),
      name: podNames,
      /** Another Pod's address, or Service. */
      ipOf: fc.option(podNames, { freq: 3 }),
      appOf: fc.option(podNames, { freq: 5 }),
      isNew: seldom,
      ready: usually,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('no pod' as const), name: podNames }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('slice' as const),
      name: sliceNames,
      of: apps,
      pods: fc.subarray<PodName>(['p1', 'p2', 'p3']),
      ready: usually,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('no slice' as const), name: sliceNames }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('service' as const),
      name: apps,
      isNew: seldom,
      releases: seldom,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('no service' as const), name: apps }) },
);
const kind = fc.constantFrom<Kind>('Pod', 'EndpointSlice', 'Service');
const step = fc.oneof(
  // The API server changes, and says so, or the kind is listed some time later.
  { weight: 8, arbitrary: fc.record({ change, isSeen: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ list: kind }) },
  { weight: 2, arbitrary: fc.record({ wait: fc.constantFrom(1, 30_000, LOST_MS / 2, LOST_MS - 1) }) },
);

const kindOf = { pod: 'Pod', slice: 'EndpointSlice', service: 'Service' } as const;

test('what is served is what is listed, and what a list has lost while its Pod is there and ready', async () => {
  let held = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: 'max' }), async (steps) => {
      const lab = new EndpointLab();
      const server: World = { pods: new Map(), slices: new Map(), services: new Map() };
      const told: World = { pods: new Map(), slices: new Map(), services: new Map() };
      let lost: Lost[] = [];
      let uids = 0;
      const now = (): number => lab.clock.now();

      const isListed = (of: string, ip: string): boolean =>
        [...told.slices.values()].some((one) => one.of === of && one.endpoints.some((endpoint) => endpoint.ip === ip));
      const objectOf = (of: Kind, name: string): KubernetesObject | undefined => {
        if (of === 'Pod') {
          const one = server.pods.get(name);
          return one && pod(name, one.ip, one);
        }
        if (of === 'EndpointSlice') {
          const one = server.slices.get(name);
          return one && slice(name, one.endpoints, one.of);
        }
        const one = server.services.get(name);
        if (one === undefined) return undefined;
        const releasedAt = new Date(Date.UTC(2030, 0, 1) + one.releasedAt).toISOString();
        return service(name, one.releasedAt < 0 ? {} : { 'fairlead.dev/release-endpoints': releasedAt }, one.uid);
      };
      const mapOf = (world: World, of: Kind): Map<string, unknown> =>
        of === 'Pod' ? world.pods : of === 'EndpointSlice' ? world.slices : world.services;

      /** Copies what the server has of one object, or of all of a kind. */
      const tell = (of: Kind, name: string): void => {
        const [from, to] = [mapOf(server, of), mapOf(told, of)];
        const before = to.get(name) as { readonly uid?: string } | undefined;
        const after = from.get(name) as { readonly uid?: string } | undefined;
        if (after === undefined) to.delete(name);
        else to.set(name, after);
        if (of === 'Service' && before?.uid !== after?.uid) lost = lost.filter((one) => one.of !== name);
      };

      const run = async (s: (typeof steps)[number]): Promise<void> => {
        if ('wait' in s) {
          await lab.clock.advance(s.wait);
          lost = lost.filter(({ at }) => now() < at + LOST_MS);
          return;
        }
        if ('list' in s) {
          const before = new Map(told.slices);
          for (const name of new Set([...mapOf(server, s.list).keys(), ...mapOf(told, s.list).keys()]))
            tell(s.list, name);
          if (s.list === 'EndpointSlice')
            for (const [name, { of, endpoints }] of [...before].sort())
              for (const endpoint of endpoints)
                if (
                  endpoint.ready &&
                  !isListed(of, endpoint.ip) &&
                  !lost.some((l) => l.of === of && l.ip === endpoint.ip)
                )
                  lost.push({ ...endpoint, at: now(), slice: name, of });
          lost = lost.filter(({ of, ip }) => !isListed(of, ip));
          lab.list(s.list, ...[...mapOf(server, s.list).keys()].map((name) => objectOf(s.list, name)!));
          return;
        }
        const { change: c } = s;
        switch (c.do) {
          case 'pod': {
            const uid = c.isNew ? undefined : server.pods.get(c.name)?.uid;
            const [[ip], [, app]] = [usual[c.ipOf ?? c.name], usual[c.appOf ?? c.name]];
            server.pods.set(c.name, { uid: uid ?? `uid-${++uids}`, ip, ready: c.ready, app });
            break;
          }
          case 'slice': {
            const endpoints = c.pods.flatMap((name) => {
              const found = server.pods.get(name);
              return found === undefined ? [] : [{ pod: name, ip: found.ip, uid: found.uid, ready: c.ready }];
            });
            // An address is in a slice once.
            const once = endpoints.filter(({ ip }, i) => endpoints.findIndex((other) => other.ip === ip) === i);
            server.slices.set(c.name, { of: c.of, endpoints: once });
            break;
          }
          case 'service': {
            const uid = c.isNew ? undefined : server.services.get(c.name)?.uid;
            server.services.set(c.name, { uid: uid ?? `uid-${++uids}`, releasedAt: c.releases ? now() : -1 });
            break;
          }
          case 'no pod':
            server.pods.delete(c.name);
            break;
          case 'no slice':
            server.slices.delete(c.name);
            break;
          case 'no service':
            server.services.delete(c.name);
        }
        if (!s.isSeen) return;
        const of = kindOf[c.do.replace('no ', '') as keyof typeof kindOf];
        tell(of, c.name);
        if (of === 'EndpointSlice') lost = lost.filter((one) => one.slice !== c.name && !isListed(one.of, one.ip));
        const object = objectOf(of, c.name);
        if (object !== undefined) lab.put(object);
        else lab.delete({ apiVersion: '', kind: of, metadata: { name: c.name, namespace: 'shop' } });
      };

      const isHeld = ({ of, pod: name, uid, ip, at }: Lost): boolean => {
        const found = told.pods.get(name);
        const owner = told.services.get(of);
        return (
          owner !== undefined &&
          owner.releasedAt < at &&
          found !== undefined &&
          found.uid === uid &&
          found.ip === ip &&
          found.ready &&
          found.app === of &&
          [...told.pods.values()].filter((other) => other.ip === ip).length === 1
        );
      };

      const begin: typeof steps = [
        ...(['p1', 'p2', 'p3'] as const).map((name) => ({
          change: { do: 'pod' as const, name, ipOf: null, appOf: null, isNew: true, ready: true },
          isSeen: true,
        })),
        ...(['reviews', 'ratings'] as const).map((name) => ({
          change: { do: 'service' as const, name, isNew: true, releases: false },
          isSeen: true,
        })),
        ...(
          [
            ['s1', 'reviews'],
            ['s2', 'ratings'],
          ] as const
        ).map(([name, of]) => ({
          change: {
            do: 'slice' as const,
            name,
            of,
            pods: (['p1', 'p2', 'p3'] as const).filter((each) => usual[each][1] === of),
            ready: true,
          },
          isSeen: true,
        })),
      ];
      for (const s of [...begin, ...steps]) {
        await run(s);
        for (const of of ['reviews', 'ratings']) {
          // An address that is listed twice is what the first slice says.
          const listed = new Map<string, boolean>();
          for (const [, one] of [...told.slices].sort())
            for (const { pod: name, ip, ready } of one.endpoints)
              if (one.of === of && told.pods.has(name) && !listed.has(ip)) listed.set(ip, ready);
          const kept = lost.filter((one) => one.of === of && isHeld(one));
          held += kept.length;
          const ready = [...listed].flatMap(([ip, isReady]) => (isReady ? [ip] : []));
          expect(lab.served(of)).toEqual([...ready, ...kept.map(({ ip }) => ip)].sort());
          expect(lab.held().filter((one) => one.startsWith(of))).toEqual(kept.map(({ ip }) => `${of} ${ip}`).sort());
        }
      }
      lab.end();
    }),
    { numRuns: runs(150) },
  );
  // The histories are about something.
  expect(held).toBeGreaterThan(runs(100));
});
