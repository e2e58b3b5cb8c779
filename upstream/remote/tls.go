package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS says whom to trust and as whom to appear. The zero value trusts whom the system trusts.
type TLS struct {
	CA        string // path of certificates that are trusted instead of the system's, in PEM
	Cert, Key string // paths of our own certificate and its key, in PEM; read again for every connection
	Insecure  bool   // trust anybody: what is sent and received may be read and changed on the way
}

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("reading the trusted certificates: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("there is no certificate in %s", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate")
	}
	if t.Cert == "" {
		return c, nil
	}
	if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		return &pair, err
	}
	return c, nil
}
