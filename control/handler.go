package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
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
	Servers() []Server // their states, which cost nothing

	// Reload reads again where servers are configured. It ends with ctx.
	Reload(ctx context.Context) (Change, error)

	Servers
	Runs
	Logins
}

// answerWait bounds the time of a request.
const answerWait = 30 * time.Second

// A route is a request of the API.
type route struct {
	method, path string
	body         func() any // what the body is decoded into; nil: there is none
	answer       func(ctx context.Context, s Source, body any) (any, error)
}

// post returns the route of a request with a body.
func post[Body, Answer any](path string, answer func(s Source, ctx context.Context, body Body) (Answer, error)) route {
	return route{http.MethodPost, path, func() any { return new(Body) }, func(ctx context.Context, s Source, body any) (any, error) {
		return answer(s, ctx, *body.(*Body))
	}}
}

// routes returns the table of the API for a viewer.
func routes(v Viewer) []route {
	return slices.Concat(ownRoutes, serverRoutes(v), runRoutes(v), loginRoutes)
}

// ownRoutes are the requests about the gateway itself.
var ownRoutes = []route{
	{http.MethodGet, "/v1/gateway", nil, func(_ context.Context, s Source, _ any) (any, error) { return s.Gateway(), nil }},
	{http.MethodGet, "/v1/servers", nil, func(_ context.Context, s Source, _ any) (any, error) { return s.Servers(), nil }},
	{http.MethodPost, "/v1/reload", nil, func(ctx context.Context, s Source, _ any) (any, error) { return s.Reload(ctx) }},
}

// Handler returns the API of a gateway for those who see its runs as v does. It does not authenticate.
func Handler(s Source, v Viewer) http.Handler {
	table := routes(v)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerWait)
		defer cancel()
		result, err := serve(ctx, s, table, w.Header(), r)
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
func serve(ctx context.Context, s Source, table []route, h http.Header, r *http.Request) (any, error) {
	var methods []string
	for _, route := range table {
		if route.path != r.URL.Path {
			continue
		}
		if methods = append(methods, route.method); route.method != r.Method {
			continue
		}
		body, err := route.read(r)
		if err != nil {
			return nil, err
		}
		return route.answer(ctx, s, body)
	}
	if len(methods) > 0 {
		h.Set("Allow", strings.Join(methods, ", "))
		return nil, failed(http.StatusMethodNotAllowed, "", "%s takes %s", r.URL.Path, strings.Join(methods, " and "))
	}
	return nil, failed(http.StatusNotFound, "there are "+strings.Join(paths(table), ", "), "there is no %s here", texts.Quote(r.URL.Path))
}

// maxBody bounds the body of a request, in bytes: it may have an address with a long code.
const maxBody = 128 << 10

// read reads the body of a request.
func (route *route) read(r *http.Request) (any, error) {
	if route.body == nil {
		if r.ContentLength != 0 {
			return nil, failed(http.StatusRequestEntityTooLarge, "leave the body out", "%s %s takes no body", route.method, route.path)
		}
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, failed(http.StatusBadRequest, "", "the body cannot be read: %v", err)
	}
	if len(data) > maxBody {
		return nil, bodyTooLarge()
	}
	body := route.body()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(body)
	if err == nil && decoder.More() {
		err = errors.New("something follows it")
	}
	if err != nil {
		return nil, failed(http.StatusBadRequest, "docs/control.md has the members", "the body is not the JSON object of %s: %v", route.path, err)
	}
	return body, nil
}

func bodyTooLarge() error {
	return failed(http.StatusRequestEntityTooLarge, "", "the body has more than %s", texts.Bytes(maxBody))
}

func paths(table []route) (list []string) {
	for _, route := range table {
		list = append(list, route.path)
	}
	return slices.Compact(list)
}
