import { Counter, Gauge, type Histogram, type Registry } from 'prom-client';
import { Tally } from './tally.ts';

export type Labelled<L extends string> = readonly (readonly [Record<L, string>, number])[];

type Labels<L extends string> = readonly L[];

/** Ways to define a metric. All values but those of totals are read at each scrape. */
export interface MetricFactory {
  gauge(name: string, help: string, value: () => number): void;
  counter(name: string, help: string, value: () => number): void;
  gauges<L extends string>(name: string, help: string, labelNames: Labels<L>, values: () => Labelled<L>): void;
  counters<L extends string>(name: string, help: string, labelNames: Labels<L>, values: () => Labelled<L>): void;
  histogram(name: string, help: string, bounds: readonly number[]): Tally;
  /** One for each value of a label. */
  histograms(name: string, help: string, bounds: readonly number[], labelName: string): (label: string) => Tally;
  total<L extends string>(name: string, help: string, labelNames: L[]): Counter<L>;
}

/** Reads a source once per rendering if several metrics use it. */
export type Once = <T>(ask: () => T) => () => T;

export function metricsOf(registry: Registry): MetricFactory {
  const registers = [registry];
  const gauges: MetricFactory['gauges'] = (name, help, labelNames, values) => {
    new Gauge({
      name,
      help,
      registers,
      labelNames,
      collect() {
        setAll(this, values());
      },
    });
  };
  const counters: MetricFactory['counters'] = (name, help, labelNames, values) => {
    new Counter({
      name,
      help,
      registers,
      labelNames,
      collect() {
        setAll(this, values());
      },
    });
  };
  return {
    gauge: (name, help, value) => {
      gauges(name, help, [], () => [[{}, value()]]);
    },
    counter: (name, help, value) => {
      counters(name, help, [], () => [[{}, value()]]);
    },
    gauges,
    counters,
    histogram(name, help, bounds) {
      const tally = new Tally(bounds);
      registry.registerMetric(tallied(name, help, () => [[{}, tally]]));
      return tally;
    },
    histograms(name, help, bounds, labelName) {
      const tallies = new Map<string, Tally>();
      const all: Tallies = () => Array.from(tallies, ([label, tally]) => [{ [labelName]: label }, tally]);
      registry.registerMetric(tallied(name, help, all));
      return (label) => {
        let tally = tallies.get(label);
        if (tally === undefined) tallies.set(label, (tally = new Tally(bounds)));
        return tally;
      };
    },
    total: (name, help, labelNames) => new Counter({ name, help, labelNames, registers }),
  };
}

/** Values of the same labels are added up. */
function setAll<L extends string>(metric: Counter<L> | Gauge<L>, values: Labelled<L>): void {
  metric.reset();
  for (const [labels, value] of values) metric.inc(labels, value);
}

type Tallies = () => (readonly [labels: Readonly<Record<string, string>>, tally: Tally])[];

/** A histogram whose values are counted elsewhere: what the registry asks of a metric, which its types do not say. */
function tallied(name: string, help: string, tallies: Tallies): Histogram {
  const get = (): object => ({ name, help, type: 'histogram', values: tallies().flatMap(valuesOf), aggregator: 'sum' });
  const valuesOf = ([labels, { bounds, cumulative, sum }]: ReturnType<Tallies>[number]): object[] => [
    ...[...bounds, '+Inf'].map((le, i) => ({
      labels: { le, ...labels },
      value: cumulative[i],
      metricName: `${name}_bucket`,
    })),
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: cumulative.at(-1), metricName: `${name}_count` },
  ];
  return { name, get } as unknown as Histogram;
}
