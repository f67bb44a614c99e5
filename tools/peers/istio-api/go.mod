module fairlead/tools/peers/istio-api

go 1.26.0

require istio.io/api v1.32.0
