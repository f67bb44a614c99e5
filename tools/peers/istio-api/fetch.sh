#!/bin/bash
# fetch.sh DIRECTORY: copies the CRDs of the istio.io/api that go.mod pins there. go.sum has its hash.
set -e -o pipefail
cd "$(dirname "$0")"
go mod download istio.io/api
install -m 0644 "$(go list -m -f '{{.Dir}}' istio.io/api)/kubernetes/customresourcedefinitions.gen.yaml" "$1/crds.yaml"
