package upstashtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"
)

// certificate is a self-signed certificate for the loopback addresses.
type certificate struct {
	pair tls.Certificate
	pool *x509.CertPool
}

func newCertificate() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	// Valid for a day in both directions, in case a clock is wrong.
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{Organization: []string{"upstashtest"}},
		NotBefore:             time.Now().Add(-24 * time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:              []string{"localhost"},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	return &certificate{pair: pair, pool: pool}, nil
}

// wrap makes l speak TLS. It does not offer HTTP/2: a fault needs its
// connection for itself.
func (c *certificate) wrap(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{c.pair},
		NextProtos:   []string{"http/1.1"},
	})
}

// CertPool returns a pool that trusts the server's certificate, or nil without
// [WithTLS]. It must not be changed.
func (s *Server) CertPool() *x509.CertPool {
	if s.cert == nil {
		return nil
	}
	return s.cert.pool
}
