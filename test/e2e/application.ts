/** An application as a listener of the Envoy in front of it, which is a program less to start. */
export function application(name: string, port: number, host = '127.0.0.1'): object {
  const manager = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
  const router = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';
  const answer = { status: 200, body: { inlineString: name } };
  return {
    name: `application ${name}`,
    address: { socketAddress: { address: host, portValue: port } },
    filterChains: [
      {
        filters: [
          {
            name: 'envoy.filters.network.http_connection_manager',
            typedConfig: {
              '@type': `type.googleapis.com/${manager}`,
              statPrefix: 'application',
              httpFilters: [{ name: 'envoy.filters.http.router', typedConfig: { '@type': router } }],
              routeConfig: {
                virtualHosts: [
                  { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, directResponse: answer }] },
                ],
              },
            },
          },
        ],
      },
    ],
  };
}
