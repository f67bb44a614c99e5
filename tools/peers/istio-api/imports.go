// Package imports names what go.mod pins, so that go mod tidy keeps it.
package imports

import _ "istio.io/api/label"
