// Package trust owns who is who in a cluster: the names in certificates, the authority that signs them, the tokens
// by which a newcomer gets its first, and what TLS makes of them. Certificates are X.509 over P-256, connections
// TLS 1.3; both are crypto/tls's and crypto/x509's. It opens no connection and decides nothing about what a role may
// do: that is driver/daemon's.
package trust
