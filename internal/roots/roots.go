package roots

import (
	"crypto/x509"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Use has connections trust the public authorities where the system knows none.
var Use = sync.OnceFunc(func() {
	defer func() { _ = recover() }() // a program may have set roots of its own, which is not done twice
	x509.SetFallbackRoots(public())
})

// public returns the authorities that browsers trust.
func public() *x509.CertPool {
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		switch {
		case err != nil: // of the others there are enough
		case root.Constraint == nil:
			pool.AddCert(cert)
		default:
			pool.AddCertWithConstraint(cert, root.Constraint)
		}
	}
	return pool
}
