package simulation

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// newCertificate makes a certificate, and returns a configuration with it and
// its PEM form. It is valid at any time of a virtual clock, which begins with
// the year 2000. An Ed25519 signature always has the same length, and therefore
// each handshake has too.
func newCertificate() (*tls.Config, []byte, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"simulation"}},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), IPAddresses: []net.IP{address.IP},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		return nil, nil, err
	}
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}, text, nil
}
