package durabletest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const apiKey = "key-of-the-test"

// secured puts a proxy before Temporal that speaks as Temporal Cloud does: it takes requests over TLS with one of the certificates, with
// the API key and the namespace in their headers.
func (w *world) secured(certificates *x509.CertPool) *httptest.Server {
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: w.engine.address}) },
		Transport:     &http.Transport{Protocols: new(http.Protocols)},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // requests wait for work when the test ends
	}
	forward.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		named := r.Header.Get("Temporal-Namespace") == "default" || strings.HasSuffix(r.URL.Path, "/GetSystemInfo")
		if r.Header.Get("Authorization") != "Bearer "+apiKey || !named {
			rw.Header().Set("Content-Type", "application/grpc")
			rw.Header().Set("Grpc-Status", "16") // UNAUTHENTICATED
			rw.Header().Set("Grpc-Message", "Request unauthorized.")
			return
		}
		forward.ServeHTTP(rw, r)
	}))
	proxy.EnableHTTP2, proxy.Config.ErrorLog = true, log.New(io.Discard, "", 0) // it refuses connections
	proxy.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: certificates}
	proxy.StartTLS()
	w.Cleanup(proxy.Close)
	return proxy
}

// file writes a file of the world, and returns its path.
func (w *world) file(name string, data []byte) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	fine(w.T, os.WriteFile(path, data, 0o600))
	return path
}

// certificate makes a certificate of a client, and returns it with the files of it and its key.
func (w *world) certificate() (certificate *x509.Certificate, file, keyFile string) {
	w.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fine(w.T, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	fine(w.T, err)
	certificate, err = x509.ParseCertificate(data)
	fine(w.T, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	fine(w.T, err)
	file = w.file("client.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}))
	return certificate, file, w.file("client.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// TestSecured: gateways and workers reach Temporal over mutual TLS and with an API key, and without one of them they do not start and say
// why.
func TestSecured(t *testing.T) {
	w := newWorld(t)
	certificate, file, key := w.certificate()
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate)
	proxy := w.secured(trusted)
	authority := w.file("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw}))
	flags := []string{
		"--temporal", proxy.Listener.Addr().String(), "--temporal-ca", authority, "--temporal-cert", file, "--temporal-cert-key", key,
		"--temporal-api-key-file", w.file("api-key", []byte(apiKey+"\n")),
	}
	gateway := func(jobs string) *process {
		return w.serve(w.servers(), append(append([]string{"--durable-jobs", jobs}, w.store...), flags...)...)
	}
	front := w.agent(gateway("0"))
	gateway("1")
	run := front.submit(each(arguments{N: 20}, "", "post"))
	front.succeeds(run)
	if got := front.check(front.results(run), "post", 20); got != (tally{}) {
		t.Errorf("got %+v", got)
	}
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"another key":       {append(flags[:len(flags):len(flags)], "--temporal-api-key-file", w.file("other-key", []byte("hunter2"))), "unauthorized"},
		"no key":            {flags[:8], "unauthorized"},
		"no certificate":    {append(flags[:4:4], flags[8:]...), "connecting to Temporal at"}, // TLS 1.3 may close the connection before its alert is read
		"unknown authority": {append(flags[:2:2], flags[4:]...), "certificate signed by unknown authority"},
	} {
		p, err := w.tryToServe(w.servers(), append(w.store[:len(w.store):len(w.store)], c.flags...)...)
		if err == nil {
			p.kill()
			t.Errorf("%s: it starts", name)
		} else if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
