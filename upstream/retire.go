package upstream

import (
	"errors"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// errRetired is the error of a call that comes when the configuration has another server of that name, or none. The
// call has not been sent.
var errRetired = errors.New("the server has been replaced")

// is reports whether the unit is what a source now says of its server.
func (u *unit) is(s *Server) bool {
	return u.origin == s || s.Version != "" && s.Version == u.server.Version
}

// retire refuses new calls, waits for those in flight, and ends the session.
func (u *unit) retire() {
	close(u.retired)
	u.tasks.start(func() {
		defer u.end()
		for range cap(u.seats) {
			select {
			case u.seats <- struct{}{}:
			case <-u.life.Done():
				return
			}
		}
	})
}

func (u *unit) isRetired() bool {
	select {
	case <-u.retired:
		return true
	default:
		return false
	}
}

// hiding makes a replacer of words that are secret, or nothing if there are none.
func hiding(secrets []string) *strings.Replacer {
	words := slices.DeleteFunc(slices.Clone(secrets), func(word string) bool { return word == "" })
	if len(words) == 0 {
		return nil
	}
	return rpc.Hiding(words)
}

// hide takes what is secret out of a text.
func (u *unit) hide(text string) string {
	if u.secrets == nil {
		return text
	}
	return u.secrets.Replace(text)
}

// hush takes what is secret out of an error.
func (u *unit) hush(err error) error {
	if err == nil || u.secrets == nil {
		return err
	}
	var e *stages.Error
	if !errors.As(err, &e) {
		if text := u.hide(err.Error()); text != err.Error() {
			return cause{text, err}
		}
		return err
	}
	own := *e
	own.Msg, own.Hint = u.hide(e.Msg), u.hide(e.Hint)
	if e.Err != nil {
		own.Err = cause{u.hide(e.Err.Error()), e.Err}
	}
	return &own
}
