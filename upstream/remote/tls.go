package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// TLS says which certificates are trusted and which one we present. The zero value trusts those of the system.
type TLS struct {
	CA        string // path of certificates that are trusted instead of the system's, in PEM
	Cert, Key string // paths of our own certificate and its key, in PEM; read again for every connection
	Insecure  bool   // trust any certificate: others can read and change what is sent
}

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure}
	if t.CA != "" {
		c.RootCAs = x509.NewCertPool()
		if err := t.trust(c.RootCAs); err != nil {
			return nil, err
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate")
	}
	if t.Cert == "" {
		return c, nil
	}
	if _, err := t.pair(); err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := t.pair()
		return &pair, err
	}
	return c, nil
}

// MaxPEM bounds a file of certificates or of a key, in bytes: those of all public authorities take 250 KB.
const MaxPEM = 4 << 20

// pair reads our own certificate and its key.
func (t TLS) pair() (tls.Certificate, error) {
	cert, err := namedfile.Read(t.Cert, MaxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := namedfile.Read(t.Key, MaxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// elsewhere returns the settings for hosts other than the server, such as an authorization server, which gets a secret:
// its certificate is always checked, against the system's and CA, and ours is not presented.
func (t TLS) elsewhere() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA == "" {
		return c, nil
	}
	var err error
	if c.RootCAs, err = x509.SystemCertPool(); err != nil {
		c.RootCAs = x509.NewCertPool()
	}
	return c, t.trust(c.RootCAs)
}

// trust adds the certificates of CA to pool.
func (t TLS) trust(pool *x509.CertPool) error {
	pem, err := namedfile.Read(t.CA, MaxPEM)
	if err != nil {
		return fmt.Errorf("reading the trusted certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("there is no certificate in %s", t.CA)
	}
	return nil
}
