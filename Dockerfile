# The program is one bundle without dependencies: the image has Node, the bundle and nothing to install.
ARG NODE=24.21.0-bookworm-slim

FROM node:${NODE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc tsconfig.json ./
# With optional packages: the compiler of the platform is one.
RUN npm ci
COPY tools/build.ts tools/
COPY src src
COPY charts/fairlead/files charts/fairlead/files
RUN node tools/build.ts dist

FROM node:${NODE}
LABEL org.opencontainers.image.title="Fairlead" \
      org.opencontainers.image.description="An Envoy control plane that runs as a Kubernetes operator." \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/dist dist
# By number, so that Kubernetes can see that it is not root: the user `node` of the base.
USER 1000:1000
# The heap follows the memory of the container; the rest is for what is not in it.
ENV NODE_OPTIONS=--max-old-space-size-percentage=60
EXPOSE 15010 15014 8080
# A dependency uses a module of Node that is on its way out.
ENTRYPOINT ["node", "--disable-warning=DEP0040", "/app/dist/main.js"]
CMD ["serve"]
