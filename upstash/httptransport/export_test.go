package httptransport

import (
	"crypto/tls"
	"crypto/x509"
)

// Trust makes a transport of New(nil) accept the certificates of roots.
func Trust(t *Transport, roots *x509.CertPool) {
	t.owned.current.Load().TLSClientConfig = &tls.Config{RootCAs: roots}
}
