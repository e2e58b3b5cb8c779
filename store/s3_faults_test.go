package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// A fault answers a request in place of the server. It returns false for requests that the server is to answer.
type fault func(w http.ResponseWriter, r *http.Request, server http.Handler) bool

// withFaults puts a fault before a server once the store is open. All requests go through it.
func withFaults(t *testing.T, o store.S3Options) (*store.S3, *atomic.Pointer[fault]) {
	t.Helper()
	target, err := url.Parse(o.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	server := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	var current atomic.Pointer[fault]
	o.Endpoint = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if f := current.Load(); f == nil || !(*f)(w, r, server) {
			server.ServeHTTP(w, r)
		}
	})
	return openS3(t, o), &current
}

func serve(t *testing.T, h http.HandlerFunc) (endpoint string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// answer is the error of an S3 server.
func answer(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}

// calls are the methods of a store, each for an object that is there, but that of put.
func calls(ctx context.Context, s store.Store) map[string]func() error {
	return map[string]func() error{
		"put":    func() error { return put(ctx, s, "new", "new") },
		"get":    func() error { _, err := get(ctx, s, "there"); return err },
		"delete": func() error { return s.Delete(ctx, "other") },
		"list": func() error {
			for _, err := range s.List(ctx, "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// allCalls makes each call and returns their errors.
func allCalls(ctx context.Context, s store.Store) map[string]error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	errs := map[string]error{}
	for name, call := range calls(ctx, s) {
		wg.Go(func() {
			err := call()
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
	}
	wg.Wait()
	return errs
}

func TestS3Busy(t *testing.T) {
	t.Parallel()
	s, current := withFaults(t, storetest.S3(t))
	mustPut(t, s, "there", "there")
	for _, failures := range []int{2, 1000} { // of each request
		var mu sync.Mutex
		failed := map[string]int{}
		busy := fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			mu.Lock()
			request := r.Method + r.URL.Path
			failed[request]++
			ends := failed[request] > failures
			mu.Unlock()
			if !ends {
				answer(w, http.StatusServiceUnavailable, "SlowDown", "please wait")
			}
			return !ends
		})
		current.Store(&busy)
		for name, err := range allCalls(t.Context(), s) {
			if failures == 2 && err != nil || failures > 2 && (err == nil || !strings.Contains(err.Error(), "status 503")) {
				t.Errorf("%s with %d failures: %v", name, failures, err)
			}
		}
	}
}

// TestS3Silent has a server that takes requests and never answers.
func TestS3Silent(t *testing.T) {
	t.Parallel()
	o := storetest.S3(t)
	o.Timeout = 500 * time.Millisecond
	impatient, current := withFaults(t, o)
	mustPut(t, impatient, "there", "there")
	o.Timeout = time.Hour
	patient, alsoCurrent := withFaults(t, o)
	silent := fault(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		stall(r)
		return true
	})
	current.Store(&silent)
	alsoCurrent.Store(&silent)
	for name, err := range allCalls(t.Context(), impatient) {
		if err == nil || !strings.Contains(err.Error(), "the server took longer than 500ms") {
			t.Errorf("%s: %v", name, err)
		}
	}
	cause := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	for name, err := range allCalls(ctx, patient) {
		if !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stall waits for the end of a request. Its server notices that only when it has read all that was sent.
func stall(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// TestS3StopsInTheMiddle: of an answer that hangs, or breaks off, what came is never the whole object.
func TestS3StopsInTheMiddle(t *testing.T) {
	t.Parallel()
	o := storetest.S3(t)
	o.Timeout = 500 * time.Millisecond
	s, current := withFaults(t, o)
	data := text(200_000)
	mustPut(t, s, "there", data)
	for name, c := range map[string]struct {
		ends func(w http.ResponseWriter, r *http.Request)
		want string
	}{
		"breaks off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "Connection closed by foreign host"},
		"hangs":      {func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); stall(r) }, "the server took longer than 500ms"},
	} {
		half := fault(func(w http.ResponseWriter, r *http.Request, server http.Handler) bool {
			whole := httptest.NewRecorder()
			server.ServeHTTP(whole, r)
			for k, v := range whole.Header() {
				w.Header()[k] = v
			}
			w.WriteHeader(whole.Code)
			_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
			c.ends(w, r)
			return true
		})
		once := fault(func(w http.ResponseWriter, r *http.Request, server http.Handler) bool {
			current.Store(nil)
			return half(w, r, server)
		})
		current.Store(&once)
		if got, err := get(t.Context(), s, "there"); err != nil || got != data {
			t.Errorf("a server that once %s: %d bytes, %v", name, len(got), err)
		}
		current.Store(&half)
		got, err := get(t.Context(), s, "there")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `reading "there" in bucket "bucket" at http`) {
			t.Errorf("a server that %s: %d bytes, %v", name, len(got), err)
		}
	}
}

// TestS3WrongAnswers has servers whose objects and lists are longer than any.
func TestS3WrongAnswers(t *testing.T) {
	t.Parallel()
	s, current := withFaults(t, storetest.S3(t))
	for name, c := range map[string]struct {
		length string // of an object, as its server says
		want   error  // nil: any
	}{"too long": {fmt.Sprint(1 << 40), store.ErrDamaged}, "without an end": {"", nil}} {
		wrong := fault(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			if c.length != "" {
				w.Header().Set("Content-Length", c.length)
			}
			for chunk := make([]byte, 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return true
				}
			}
		})
		current.Store(&wrong)
		if got, err := get(t.Context(), s, "there"); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("an object %s: %d bytes, %v", name, len(got), err)
		}
	}
	endless := fault(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		fmt.Fprint(w, `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>
			<Contents><Key>a</Key><Size>1</Size><LastModified>2026-01-02T03:04:05Z</LastModified></Contents></ListBucketResult>`)
		return true
	})
	current.Store(&endless)
	var rows []string
	for o, err := range s.List(t.Context(), "") {
		rows = append(rows, fmt.Sprint(o.Name, " ", err))
	}
	if len(rows) != 2 || !strings.Contains(rows[1], "does not list by name") {
		t.Errorf("a list without an end is %q", rows)
	}
}

// TestS3LostAnswers: a put whose answer was lost is tried again, and finds its own object in the way.
func TestS3LostAnswers(t *testing.T) {
	t.Parallel()
	s, current := withFaults(t, storetest.S3(t))
	mustPut(t, s, "others", "theirs")
	for _, c := range []struct {
		name  string
		lose  func(w http.ResponseWriter)
		want  error
		there string
	}{
		{"mine", func(w http.ResponseWriter) { answer(w, http.StatusInternalServerError, "InternalError", "try again") }, nil, "mine"},
		{"mine/cut", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, nil, "mine/cut"},
		{"others", func(w http.ResponseWriter) { answer(w, http.StatusInternalServerError, "InternalError", "try again") }, store.ErrExists, "theirs"},
		{"conflict", func(w http.ResponseWriter) {
			answer(w, http.StatusConflict, "ConditionalRequestConflict", "another request is under way")
		}, nil, "conflict"},
	} {
		var once sync.Once
		name := strings.ReplaceAll(c.name, "/", "-")
		lost := fault(func(w http.ResponseWriter, r *http.Request, server http.Handler) (answered bool) {
			if r.Method == http.MethodPut {
				once.Do(func() {
					if c.name != "conflict" { // which the server has refused
						server.ServeHTTP(httptest.NewRecorder(), r)
					}
					answered = true
					c.lose(w)
				})
			}
			return answered
		})
		current.Store(&lost)
		if err := put(t.Context(), s, name, c.name); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got, err := get(t.Context(), s, name); err != nil || got != c.there {
			t.Errorf("%s: there is %q, %v", c.name, got, err)
		}
	}
}

func TestOpenS3(t *testing.T) {
	t.Parallel()
	good := storetest.S3(t)
	with := func(change func(*store.S3Options)) store.S3Options {
		o := good
		change(&o)
		return o
	}
	fake := func(h http.HandlerFunc) store.S3Options {
		return with(func(o *store.S3Options) { o.Endpoint = serve(t, h) })
	}
	var deleted atomic.Bool
	for name, c := range map[string]struct {
		options store.S3Options
		want    string
	}{
		"ignores conditions": {fake(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				deleted.Store(true)
				w.WriteHeader(http.StatusNoContent)
			}
		}), "its server ignores conditional writes"},
		"read only": {fake(func(w http.ResponseWriter, r *http.Request) {
			answer(w, http.StatusForbidden, "AccessDenied", "Access Denied"+strings.Repeat("x", 100_000))
		}), "(AccessDenied, status 403); check the credentials: they need s3:GetObject, s3:PutObject"},
		"wrong secret": {with(func(o *store.S3Options) { o.SecretKey = "wrong" }), "check the credentials"},
		"no bucket":    {with(func(o *store.S3Options) { o.Bucket = "nowhere" }), `in bucket "nowhere" at http://127.0.0.1`},
		"bad bucket":   {with(func(o *store.S3Options) { o.Bucket = "key:secret-of-the-test@bucket" }), "not the name of a bucket"},
		"bad prefix":   {with(func(o *store.S3Options) { o.Prefix = "../" }), "the prefix of the S3 store"},
		"no URL":       {with(func(o *store.S3Options) { o.Endpoint = "localhost:9000" }), "the endpoint of an S3 store is a URL"},
		"keys in URL":  {with(func(o *store.S3Options) { o.Endpoint = "https://key:secret-of-the-test@localhost" }), "keys do not belong there"},
		"a path":       {with(func(o *store.S3Options) { o.Endpoint += "/bucket" }), "the endpoint of an S3 store is a URL"},
		"nobody there": {with(func(o *store.S3Options) { o.Endpoint = "http://127.0.0.1:1" }), "in bucket \"bucket\" at http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"},
	} {
		_, err := store.OpenS3(t.Context(), c.options)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		if text := err.Error(); strings.Contains(text, good.SecretKey) || len(text) > 600 {
			t.Errorf("%s: the error is %q", name, text)
		}
	}
	if !deleted.Load() {
		t.Error("the object of the probe is still there")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	silent := fake(func(_ http.ResponseWriter, r *http.Request) { stall(r) })
	if _, err := store.OpenS3(ctx, silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that is silent at the start: %v", err)
	}
	if got := names(t, openS3(t, good), ""); len(got) > 0 {
		t.Errorf("opening leaves %q", got)
	}
}

// TestPlatformIdentity: without an access key the platform gives one, here that of a container.
func TestPlatformIdentity(t *testing.T) {
	o := storetest.S3(t)
	identity := fmt.Sprintf(`{"AccessKeyId":%q,"SecretAccessKey":%q,"Expiration":%q}`, o.AccessKey, o.SecretKey, time.Now().Add(time.Hour).Format(time.RFC3339))
	o.AccessKey, o.SecretKey = "", ""
	given := true
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !given {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, identity)
	}))
	mustPut(t, openS3(t, o), "a", "x")
	given = false
	if _, err := store.OpenS3(t.Context(), o); err == nil || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") {
		t.Errorf("a platform without an identity: %v", err)
	}
}

// TestS3Pages lists more objects than a server puts into an answer, and leaves out those of others.
func TestS3Pages(t *testing.T) {
	t.Parallel()
	const objects = 1010
	o := storetest.S3(t)
	outer := openS3(t, o)
	mustPut(t, outer, "in", "x")
	mustPut(t, outer, "ins/0", "x")
	o.Prefix = "in/"
	if err := outer.Delete(t.Context(), "in"); err != nil { // a name that its server could not have as a folder, too
		t.Fatal(err)
	}
	s := openS3(t, o)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < objects; i += 8 {
				if err := put(t.Context(), s, fmt.Sprintf("many/%04d", i), "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := names(t, s, "")
	for i, row := range got {
		if row != fmt.Sprintf("many/%04d 1", i) {
			t.Fatalf("row %d is %q", i, row)
		}
	}
	if len(got) != objects {
		t.Errorf("%d objects are listed", len(got))
	}
	seen := 0
	for range s.List(t.Context(), "") {
		if seen++; seen == 3 {
			break
		}
	}
}
