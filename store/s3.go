package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	s3Timeout    = 30 * time.Second       // for a request with its answer, by default
	identityWait = 10 * time.Second       // for the first identity of the platform
	s3Attempts   = 5                      // of a request; the waits between them are 0.2 to 1 s
	s3Pause      = 100 * time.Millisecond // after the first refusal because of another request, and more after each
	s3Writer     = "Mcsh-Put"             // metadata: a random value of the Put that has written an object
)

// S3Options says where objects are, and as whom they are read and written.
type S3Options struct {
	Endpoint string // URL, such as https://minio.example.org:9000; empty: Amazon S3
	Region   string // empty: Amazon S3 is asked, and other servers take us-east-1
	Bucket   string
	Prefix   string // a folder of the bucket, such as "mcsh/prod"; empty: none

	// Without an access key, the identity is that of the platform: a web identity, a container or an instance. minio-go
	// finds it through the environment.
	AccessKey, SecretKey, SessionToken string

	Timeout time.Duration // for a request with its answer; 0: 30 s
}

// S3 is a [Store] in a bucket. A request is sent again after a failure that may pass.
type S3 struct {
	client         *minio.Client
	core           minio.Core
	bucket, prefix string
	place          string // for errors
}

// OpenS3 checks that the bucket can be written, and that its server keeps a promise that old ones ignore: of two objects of
// one name, the first stays.
func OpenS3(ctx context.Context, o S3Options) (*S3, error) {
	endpoint, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if s3utils.CheckValidBucketName(o.Bucket) != nil {
		return nil, errors.New("the bucket of the S3 store is not the name of a bucket; keys do not belong there")
	}
	folder := strings.TrimSuffix(o.Prefix, "/")
	if folder != "" {
		if err := checkName(folder); err != nil {
			return nil, fmt.Errorf("the prefix of the S3 store: %w", err)
		}
		folder += "/"
	}
	options := &minio.Options{
		Secure:     endpoint.Scheme == "https",
		Transport:  newTransport(cmp.Or(o.Timeout, s3Timeout)),
		Region:     o.Region,
		MaxRetries: s3Attempts,
	}
	if o.Endpoint != "" {
		options.Region = cmp.Or(o.Region, "us-east-1")
	}
	if options.Creds, err = o.identity(ctx, options.Transport); err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.Host, options)
	if err != nil {
		return nil, fmt.Errorf("the S3 store at %s: %w", endpoint, err)
	}
	s := &S3{client: client, core: minio.Core{Client: client}, bucket: o.Bucket, prefix: folder}
	s.place = fmt.Sprintf("bucket %s at %s", texts.Quote(o.Bucket), endpoint)
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func newTransport(wait time.Duration) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // objects are read as they are
	t.MaxIdleConnsPerHost = 16
	return wholeAnswers{t, wait}
}

// identity returns what signs requests. An identity of the platform is renewed before it ends.
func (o S3Options) identity(ctx context.Context, transport http.RoundTripper) (*credentials.Credentials, error) {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken), nil
	}
	c := credentials.New(&credentials.IAM{Region: o.Region})
	ctx, cancel := context.WithTimeout(ctx, identityWait)
	defer cancel()
	if _, err := c.GetWithContext(&credentials.CredContext{Client: &http.Client{Transport: transport}, Context: ctx}); err != nil {
		return nil, fmt.Errorf("the S3 store has no access key, and this machine has no identity at Amazon (web identity, container, instance); "+
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %w", err)
	}
	return c, nil
}

// parseEndpoint parses the URL of a server.
func parseEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(cmp.Or(endpoint, "https://s3.amazonaws.com"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New("the endpoint of an S3 store is a URL of a server and nothing else, such as https://s3.example.org:9000; keys do not belong there")
	}
	u.Path = ""
	return u, nil
}

// probe writes an object twice. No list shows its name.
func (s *S3) probe(ctx context.Context) error {
	name := "~probe-" + rand.Text()
	first := s.put(ctx, name, []byte("1"))
	if first != nil {
		return s.failed(ctx, "opening the store: writing", name, first)
	}
	second := s.put(ctx, name, []byte("2"))
	if err := s.remove(ctx, name); err != nil {
		return s.failed(ctx, "opening the store: deleting", name, err)
	}
	if second == nil {
		return fmt.Errorf("%s cannot be a store: its server ignores conditional writes (If-None-Match: *), so that gateways would "+
			"overwrite each other's objects; take a newer server, or a shared directory", s.place)
	}
	if !errors.Is(second, ErrExists) {
		return s.failed(ctx, "opening the store: writing", name, second)
	}
	return nil
}

// Put implements [Store].
func (s *S3) Put(ctx context.Context, name string, data []byte) error {
	if err := checkPut(ctx, name, data, maxStored); err != nil {
		return err
	}
	return s.failed(ctx, "writing", name, s.put(ctx, name, data))
}

// put writes an object if there is none. A server may refuse it while another request on that name is under way.
func (s *S3) put(ctx context.Context, name string, data []byte) (err error) {
	writer, sum := rand.Text(), sha256.Sum256(data)
	for attempt := range s3Attempts {
		var again bool
		again, err = s.tryPut(ctx, writer, name, data, hex.EncodeToString(sum[:]))
		if !again {
			break
		}
		if err := pausing.For(ctx, time.Duration(attempt+1)*s3Pause); err != nil {
			return err
		}
	}
	return err
}

// tryPut writes an object and reports whether to try again. If the answer to an earlier attempt was lost, the
// object is there already: the writer in its metadata shows that it is ours.
func (s *S3) tryPut(ctx context.Context, writer, name string, data []byte, sha256Hex string) (again bool, _ error) {
	options := minio.PutObjectOptions{UserMetadata: map[string]string{s3Writer: writer}, DisableContentSha256: true} // the hash is signed
	options.SetMatchETagExcept("*")
	_, err := s.core.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(data), int64(len(data)), "", sha256Hex, options)
	status := minio.ToErrorResponse(err).StatusCode
	if status != http.StatusPreconditionFailed && status != http.StatusConflict {
		return false, err
	}
	there, statErr := s.client.StatObject(ctx, s.bucket, s.prefix+name, minio.StatObjectOptions{})
	switch {
	case statErr == nil && there.UserMetadata[s3Writer] == writer:
		return false, nil
	case statErr == nil, status == http.StatusPreconditionFailed && isNotFound(statErr): // it has been deleted since
		return false, ErrExists
	case isNotFound(statErr):
		return true, err
	}
	return false, statErr
}

// Get implements [Store].
func (s *S3) Get(ctx context.Context, name string) ([]byte, error) {
	if err := checkCall(ctx, name); err != nil {
		return nil, err
	}
	data, err := s.get(ctx, name)
	if err != nil {
		return nil, s.failed(ctx, "reading", name, err)
	}
	return data, nil
}

func (s *S3) get(ctx context.Context, name string) ([]byte, error) {
	body, info, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if info.Size > maxStored {
		return nil, tooLong(info.Size)
	}
	data, err := io.ReadAll(body)
	if err == nil && int64(len(data)) > maxStored {
		err = tooLong(int64(len(data)))
	}
	return data, err
}

// List implements [Store].
func (s *S3) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Object{}, err)
			return
		}
		var last string
		owner := false
		for row := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, FetchOwner: &owner}) {
			name, ours := strings.CutPrefix(row.Key, s.prefix+prefix)
			name = prefix + name
			err := row.Err
			if err == nil && (!ours || name <= last) { // a server that repeats itself would do so forever
				err = fmt.Errorf("the server does not list by name: %s comes after %s", texts.Quote(texts.Cut(row.Key, 80)), texts.Quote(last))
			}
			if err != nil {
				yield(Object{}, s.failed(ctx, "listing", prefix, err))
				return
			}
			last = name
			if checkName(name) == nil && !yield(Object{Name: name, Size: row.Size, Modified: row.LastModified}, nil) {
				return
			}
		}
		if ctx.Err() != nil { // which ends the rows without an error
			yield(Object{}, s.failed(ctx, "listing", prefix, ctx.Err()))
		}
	}
}

// Delete implements [Store].
func (s *S3) Delete(ctx context.Context, name string) error {
	if err := checkCall(ctx, name); err != nil {
		return err
	}
	return s.failed(ctx, "deleting", name, s.remove(ctx, name))
}

func (s *S3) remove(ctx context.Context, name string) error {
	if err := s.client.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{}); !isNotFound(err) {
		return err
	}
	return nil
}

func isNotFound(err error) bool { return minio.ToErrorResponse(err).Code == minio.NoSuchKey }

// failed says what failed where, and why, in bounded words without the URL of the request. It returns nil for no error.
func (s *S3) failed(ctx context.Context, doing, name string, err error) error {
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	request, unanswered := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case isNotFound(err):
		err = ErrNotFound
	case answered:
		hint := ""
		if answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized {
			hint = "; check the credentials: they need s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket"
		}
		err = fmt.Errorf("%s (%s, status %d)%s", texts.Plain(texts.Cut(answer.Error(), 200), false), texts.Plain(texts.Cut(answer.Code, 60), false), answer.StatusCode, hint)
	case unanswered:
		err = request.Err
	}
	return fmt.Errorf("%s %s in %s: %w", doing, texts.Quote(name), s.place, err)
}
