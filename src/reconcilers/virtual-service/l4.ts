import { parseCidr } from '../../model/cidr.ts';
import { canonicalHost } from '../../model/host.ts';
import type { L4Destination, L4Match, L4Route, TlsMatch, TlsRoute } from '../../model/l4-routes.ts';
import { parentKey } from '../../model/route-binding.ts';
import { parentNamed } from '../../model/virtual-service.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { checkWeights } from './http.ts';
import { readMatchPort, readSource } from './match.ts';
import { isHost, readDestination, type NameContext } from './names.ts';

/** One element of `spec.tcp`. */
export function readTcpRoute(field: Field, context: NameContext): L4Route {
  return {
    field: field.path,
    matches: field
      .get('match')
      .objects()
      .map((match) => readL4Match(match, context.namespace)),
    destinations: readDestinations(field, context),
  };
}

/** One element of `spec.tls`. `hasHost` says whether a host belongs to the VirtualService. */
export function readTlsRoute(field: Field, context: NameContext, hasHost: (host: string) => boolean): TlsRoute {
  const matches = field.get('match').objects();
  if (matches.length === 0) field.get('match').invalid('must specify the server names of the route.');
  return {
    field: field.path,
    matches: matches.map((match) => readTlsMatch(match, context.namespace, hasHost)),
    destinations: readDestinations(field, context),
  };
}

function readTlsMatch(field: Field, namespace: string, hasHost: (host: string) => boolean): TlsMatch {
  const names = field.get('sniHosts');
  const sniHosts = names.list().map((element) => {
    const name = element.string();
    // Envoy does not support a wildcard for part of a label here.
    if (!isHost(name) || /^\*[^.]/.test(name)) {
      element.invalid(`${quote(name)} is not a server name; write a host name, *.suffix or *.`);
    } else if (!hasHost(canonicalHost(name))) {
      element.invalid(`${quote(name)} is outside the hosts of this VirtualService; add it to spec.hosts.`);
    }
    return canonicalHost(name);
  });
  if (sniHosts.length === 0) names.invalid('must have at least one server name.');
  return { ...readL4Match(field, namespace), sniHosts: [...new Set(sniHosts)] };
}

function readL4Match(field: Field, namespace: string): L4Match {
  const destinationSubnets = field
    .get('destinationSubnets')
    .list()
    .map((element) => {
      const subnet = element.string();
      if (parseCidr(subnet) === undefined)
        element.invalid(`${quote(subnet)} is neither an IP address nor a range such as 10.0.0.0/8.`);
      return subnet;
    });
  const { gateways, ...source } = readSource(field, namespace);
  const parents = gateways.map((gateway) => parentKey(parentNamed(gateway)));
  return { destinationSubnets, port: readMatchPort(field), ...source, parents };
}

function readDestinations(field: Field, context: NameContext): L4Destination[] {
  const routes = field.get('route');
  const destinations = routes.objects().map((element): L4Destination => {
    const destination = element.get('destination');
    if (!destination.expectObject().isSet) destination.invalid('must name a host.');
    return {
      ...readDestination(destination, context),
      weight: element.get('weight').integer(0, 0x7fff_ffff) ?? 0,
    };
  });
  if (destinations.length === 0) routes.invalid('must have at least one destination.');
  checkWeights(routes, destinations);
  return destinations;
}
