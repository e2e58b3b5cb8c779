package gateway

import "net/http"

// Patient serves h as the gateway's own handlers are served.
func Patient(h http.Handler) http.Handler { return patience{h} }
