import { destinationRule, pod, service, slice, target, virtualService } from './objects.ts';

export const hostOf = (name: string): string => `${name}.shop.svc.cluster.local`;
export const clusterOf = (name = 'reviews', subset = ''): string => `outbound|80|${subset}|${hostOf(name)}`;

/** A service with two versions, behind which there are two Pods. */
export const reviews = [
  service('reviews', '10.96.0.1'),
  slice('reviews', [target('reviews-1', '10.1.0.1'), target('reviews-2', '10.1.0.2')]),
  pod('reviews-1', '10.1.0.1', { app: 'reviews', version: 'v1' }),
  pod('reviews-2', '10.1.0.2', { app: 'reviews', version: 'v2' }),
] as const;

/** One with an endpoint. */
export const ratings = [service('ratings', '10.96.0.2'), slice('ratings', ['10.1.0.9'])] as const;

export const rule = destinationRule('reviews', {
  host: 'reviews',
  subsets: ['v1', 'v2'].map((version) => ({ name: version, labels: { version } })),
});

/** The routes of the reviews, by weights of the versions. */
export const split = (v1: number, v2: number, name = 'reviews') =>
  virtualService(name, {
    hosts: ['reviews'],
    http: [
      {
        route: [
          { destination: { host: 'reviews', subset: 'v1' }, weight: v1 },
          { destination: { host: 'reviews', subset: 'v2' }, weight: v2 },
        ],
      },
    ],
  });

/** What becomes of them. */
export const splitRoutes = (v1: number, v2: number): readonly string[] => [
  `/ -> ${clusterOf('reviews', 'v1')} ${v1}, ${clusterOf('reviews', 'v2')} ${v2}`,
];

/** The virtual host of the reviews in the table of port 80. */
export const REVIEWS = `${hostOf('reviews')}:80`;
export const RATINGS = `${hostOf('ratings')}:80`;
