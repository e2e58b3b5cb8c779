package control

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A Source answers for a gateway. Its methods may be called concurrently.
type Source interface {
	Gateway() Gateway
	Servers() []Server
	Runs() []Run

	// Reload reads again where servers are configured. It ends with ctx.
	Reload(ctx context.Context) (Change, error)
}

// answerWait bounds the time of a request.
const answerWait = 30 * time.Second

// A route is a request of the API.
type route struct {
	method, path string
	answer       func(context.Context, Source) (any, error)
}

// routes is the table of the API.
var routes = []route{
	{http.MethodGet, "/v1/gateway", func(_ context.Context, s Source) (any, error) { return s.Gateway(), nil }},
	{http.MethodGet, "/v1/servers", func(_ context.Context, s Source) (any, error) { return s.Servers(), nil }},
	{http.MethodGet, "/v1/runs", func(_ context.Context, s Source) (any, error) { return s.Runs(), nil }},
	{http.MethodPost, "/v1/reload", func(ctx context.Context, s Source) (any, error) { return s.Reload(ctx) }},
}

// Handler returns the API of a gateway. It does not authenticate.
func Handler(s Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerWait)
		defer cancel()
		result, err := serve(ctx, s, w.Header(), r)
		status := http.StatusOK
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			if !ok {
				e = failed(http.StatusInternalServerError, "try again", "%s %s: %v", r.Method, r.URL.Path, err)
			}
			status, result = e.Status, failure{e}
			w.Header().Set("Connection", "close") // the rest of the request is not read
		}
		answer(w, status, result)
	})
}

func answer(w http.ResponseWriter, status int, result any) {
	body := texts.JSON(result) + "\n"
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // the client may have gone
}

// serve finds the route of a request and asks the source. h is the header of the answer.
func serve(ctx context.Context, s Source, h http.Header, r *http.Request) (any, error) {
	var methods []string
	for _, route := range routes {
		if route.path != r.URL.Path {
			continue
		}
		if methods = append(methods, route.method); route.method != r.Method {
			continue
		}
		if r.ContentLength != 0 {
			return nil, failed(http.StatusRequestEntityTooLarge, "leave the body out", "%s %s takes no body", route.method, route.path)
		}
		return route.answer(ctx, s)
	}
	if len(methods) > 0 {
		h.Set("Allow", strings.Join(methods, ", "))
		return nil, failed(http.StatusMethodNotAllowed, "", "%s takes %s", r.URL.Path, strings.Join(methods, " and "))
	}
	return nil, failed(http.StatusNotFound, "there are "+strings.Join(paths(), ", "), "there is no %s here", texts.Quote(r.URL.Path))
}

func paths() (list []string) {
	for _, route := range routes {
		list = append(list, route.path)
	}
	return slices.Compact(list)
}
