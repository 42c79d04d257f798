// Package restclient is the REST interface of a driver as a generator of clients reads docs/openapi.yaml. It holds that
// description against a driver: what a program in any language would have of it.
//
// It must not be changed by hand: go generate makes it.
package restclient

//go:generate -command oapi go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.5.0
//go:generate oapi -config config.yaml ../../docs/openapi.yaml
