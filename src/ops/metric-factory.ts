import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type Labelled<L extends string> = readonly (readonly [Record<L, string>, number])[];

type Labels<L extends string> = readonly L[];

/** Ways to define a metric. But for histograms and totals, values are read at each scrape. */
export interface MetricFactory {
  gauge(name: string, help: string, value: () => number): void;
  counter(name: string, help: string, value: () => number): void;
  gauges<L extends string>(name: string, help: string, labelNames: Labels<L>, values: () => Labelled<L>): void;
  counters<L extends string>(name: string, help: string, labelNames: Labels<L>, values: () => Labelled<L>): void;
  histogram<L extends string = never>(name: string, help: string, buckets: number[], labelNames?: L[]): Histogram<L>;
  total<L extends string>(name: string, help: string, labelNames: L[]): Counter<L>;
}

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
    histogram: (name, help, buckets, labelNames = []) => new Histogram({ name, help, buckets, labelNames, registers }),
    total: (name, help, labelNames) => new Counter({ name, help, labelNames, registers }),
  };
}

/** Values of the same labels are added up. */
function setAll<L extends string>(metric: Counter<L> | Gauge<L>, values: Labelled<L>): void {
  metric.reset();
  for (const [labels, value] of values) metric.inc(labels, value);
}
