package observe

import (
	"net/http"
	"strconv"
)

// routes are the values of the label route, beside "other".
var routes = map[string]bool{"/mcp": true, "/healthz": true, "/readyz": true, "/metrics": true}

// methods are the values of the label method, beside "other".
var methods = map[string]bool{
	http.MethodGet: true, http.MethodPost: true, http.MethodDelete: true, http.MethodHead: true, http.MethodOptions: true, http.MethodPut: true, http.MethodPatch: true,
}

// refusals are the values of the label reason of what is refused, by status.
var refusals = map[int]string{http.StatusUnauthorized: "unauthenticated", http.StatusForbidden: "forbidden"}

// HTTP counts the requests that next answers.
func (m *Metrics) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &status{ResponseWriter: w}
		defer func() { m.answered(r, s) }()
		next.ServeHTTP(s, r)
	})
}

func (m *Metrics) answered(r *http.Request, s *status) {
	route, method := r.URL.Path, r.Method
	if !routes[route] {
		route = others
	}
	if !methods[method] {
		method = others
	}
	if s.code == 0 { // nothing was written: the server says that all is well
		s.code = http.StatusOK
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(s.code)).Inc()
	if reason := refusals[s.code]; reason != "" {
		m.auth.WithLabelValues(reason).Inc()
	}
}

// status remembers the status of a response.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements [http.ResponseWriter].
func (s *status) WriteHeader(code int) {
	if s.code < http.StatusOK { // those before are news, not the answer
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

// Write implements [http.ResponseWriter].
func (s *status) Write(p []byte) (int, error) {
	if s.code < http.StatusOK {
		s.code = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
