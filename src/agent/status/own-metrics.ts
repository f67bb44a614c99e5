/** What the agent says of itself to a scraper. */
export interface OwnFigures {
  readonly connected: boolean;
  /** Undefined: only its provider knows. */
  readonly hasCertificate: boolean | undefined;
  /** For how many seconds its certificate is still valid, below zero once it is not, or undefined if it has none. */
  readonly certificateSeconds: number | undefined;
  /** Errors that nothing handled: bugs. */
  readonly unexpectedErrors: number;
  readonly failedScrapes: Readonly<Record<'envoy' | 'app', number>>;
}

/** In the text format. */
export function ownMetrics({
  connected,
  hasCertificate,
  certificateSeconds,
  unexpectedErrors,
  failedScrapes,
}: OwnFigures): string {
  return [
    ...metric('connected', 'gauge', 'Whether the control plane answers.', { '': Number(connected) }),
    ...(hasCertificate === undefined
      ? []
      : metric('has_certificate', 'gauge', 'Whether there is a good certificate.', { '': Number(hasCertificate) })),
    // As Istio's agent has it.
    ...(certificateSeconds === undefined
      ? []
      : metric('cert_expiry_seconds', 'gauge', 'Seconds until the certificate expires; below zero once it has.', {
          '{resource_name="default"}': certificateSeconds,
        })),
    ...metric('unexpected_errors_total', 'counter', 'Errors in the agent that nothing handled; please report them.', {
      '': unexpectedErrors,
    }),
    ...metric('scrape_failures_total', 'counter', 'Scrapes that failed.', {
      '{type="envoy"}': failedScrapes.envoy,
      '{type="application"}': failedScrapes.app,
    }),
    '',
  ].join('\n');
}

/** Values are by their labels. */
function metric(name: string, type: string, help: string, values: Readonly<Record<string, number>>): readonly string[] {
  const full = `istio_agent_${name}`;
  return [
    `# HELP ${full} ${help}`,
    `# TYPE ${full} ${type}`,
    ...Object.entries(values).map(([labels, value]) => `${full}${labels} ${value}`),
  ];
}
