import type { Shape } from './shape.ts';

const port = 'portOrName';

const httpGet: Shape = {
  members: { path: 'text', port, host: 'text', scheme: 'text', httpHeaders: { list: 'any' } },
  required: ['port'],
};
const tcpSocket: Shape = { members: { port, host: 'text' }, required: ['port'] };

const probe: Shape = {
  members: {
    httpGet,
    tcpSocket,
    grpc: { members: { port: 'port', service: 'text' }, required: ['port'] },
    exec: { members: { command: { list: 'text' } } },
    initialDelaySeconds: 'whole',
    timeoutSeconds: 'whole',
    periodSeconds: 'whole',
    failureThreshold: 'whole',
  },
};

const handler: Shape = { members: { httpGet, tcpSocket, exec: { members: { command: { list: 'text' } } } } };

const container: Shape = {
  members: {
    name: 'text',
    image: 'text',
    imagePullPolicy: 'text',
    command: { list: 'text' },
    args: { list: 'text' },
    restartPolicy: 'text',
    workingDir: 'text',
    env: {
      list: {
        members: { name: 'environmentName', value: 'text', valueFrom: { members: {} } },
        required: ['name'],
      },
    },
    envFrom: { list: { members: {} } },
    ports: {
      list: {
        members: { name: 'text', containerPort: 'port', hostPort: 'whole', protocol: 'text' },
        required: ['containerPort'],
      },
    },
    volumeMounts: {
      list: { members: { name: 'text', mountPath: 'text', readOnly: 'boolean' }, required: ['name', 'mountPath'] },
    },
    volumeDevices: { list: { members: { name: 'text', devicePath: 'text' } } },
    resources: { members: { limits: { map: 'any' }, requests: { map: 'any' } } },
    securityContext: {
      members: { runAsUser: 'whole', runAsGroup: 'whole', runAsNonRoot: 'boolean', readOnlyRootFilesystem: 'boolean' },
    },
    livenessProbe: probe,
    readinessProbe: probe,
    startupProbe: probe,
    lifecycle: { members: { postStart: handler, preStop: handler } },
  },
  required: ['name'],
};

const texts: Shape = { map: 'text' };
const named = (more: Readonly<Record<string, Shape>> = {}): Shape => ({
  list: { members: { name: 'text', ...more }, required: ['name'] },
  key: 'name',
});

const owner: Shape = { members: { apiVersion: 'text', kind: 'text', name: 'text', controller: 'boolean' } };

const metadata: Shape = {
  members: {
    name: 'text',
    generateName: 'text',
    namespace: 'text',
    labels: texts,
    annotations: texts,
    ownerReferences: { list: owner },
  },
};

const spec: Shape = {
  members: {
    containers: { list: container, key: 'name' },
    initContainers: { list: container, key: 'name' },
    volumes: named(),
    imagePullSecrets: { list: { members: { name: 'text' } } },
    hostNetwork: 'boolean',
    nodeSelector: texts,
    serviceAccountName: 'text',
    securityContext: {
      members: {
        runAsUser: 'whole',
        runAsGroup: 'whole',
        runAsNonRoot: 'boolean',
        sysctls: { list: { members: { name: 'text', value: 'text' }, required: ['name', 'value'] } },
      },
    },
    os: { members: { name: 'text' } },
    terminationGracePeriodSeconds: 'whole',
    tolerations: { list: { members: {} } },
    topologySpreadConstraints: { list: { members: {} } },
  },
};

/** A Pod, as far as injection reads it. */
export const podShape: Shape = { members: { metadata, spec }, required: ['spec'] };

/** A template: any part of a Pod. */
export const templateShape: Shape = {
  members: { apiVersion: 'text', kind: { oneOf: ['Pod'] }, metadata, spec },
  closed: true,
};
