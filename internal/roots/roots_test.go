package roots

import (
	"crypto/x509"
	"testing"
)

// TestThePublicAuthoritiesAreKnown, and a program that has set roots of its own goes on.
func TestThePublicAuthoritiesAreKnown(t *testing.T) {
	if public().Equal(x509.NewCertPool()) {
		t.Error("there are none")
	}
	x509.SetFallbackRoots(x509.NewCertPool())
	Use()
}
