package observe

import (
	"encoding/json"
	"net/http"
)

// A Condition is one thing that a gateway needs in order to serve.
type Condition struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	State string `json:"state"`
	Why   string `json:"why,omitempty"` // not ready; without secrets: nobody is asked who they are
}

// Ready answers whether all conditions hold: 200 or 503, and JSON that says which do not, and why.
func Ready(conditions func() []Condition) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := struct {
			Ready  bool        `json:"ready"`
			Checks []Condition `json:"checks"`
		}{true, conditions()}
		code := http.StatusOK
		for _, c := range answer.Checks {
			if !c.Ready {
				answer.Ready, code = false, http.StatusServiceUnavailable
			}
		}
		body, err := json.Marshal(answer)
		if err != nil { // texts and booleans are always written
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(code)
		w.Write(append(body, '\n')) // the client may be gone
	})
}
