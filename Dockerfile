# The program is one bundle without dependencies: the image has the libraries that Node needs, Node and the bundle. No
# shell, no package manager.
FROM node:24.21.0-bookworm-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20 AS programs
COPY tools/image/programs.sh /
# For the hook before a Pod ends: Kubernetes can wait by itself only since 1.30.
RUN bash /programs.sh /programs sleep

FROM node:24.21.0-bookworm-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20 AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc tsconfig.json ./
# With optional packages: the compiler of the platform is one, and Node another.
RUN npm ci
# The Node of this image, whose makers check the signature of the release, is the one of the package.
COPY tools/node.sha256 tools/
RUN sha256sum --check --ignore-missing tools/node.sha256 && cmp /usr/local/bin/node node_modules/node-linux-*/bin/node
COPY tools/build.ts tools/
COPY src src
COPY charts/fairlead/files charts/fairlead/files
RUN node tools/build.ts dist

FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
LABEL org.opencontainers.image.title="Fairlead" \
      org.opencontainers.image.description="An Envoy control plane that runs as a Kubernetes operator." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=programs /programs /
COPY --from=build /usr/local/bin/node /usr/local/bin/
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/dist dist
# By number, so that Kubernetes can see that it is not root.
USER 1000:1000
# The heap follows the memory of the container; the rest is for what is not in it.
ENV NODE_OPTIONS=--max-old-space-size-percentage=60
EXPOSE 15010 15014 8080
# A dependency uses a module of Node that is on its way out.
ENTRYPOINT ["node", "--disable-warning=DEP0040", "/app/dist/main.js"]
CMD ["serve"]
