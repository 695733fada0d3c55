package httptransport

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
)

// Trust makes a transport of New(nil) accept the certificates of roots.
func Trust(t *Transport, roots *x509.CertPool) {
	t.client.Transport.(unredirected).RoundTripper.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
}
