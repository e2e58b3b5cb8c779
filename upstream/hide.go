package upstream

import (
	"errors"
	"slices"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Hide removes the secrets of the configuration of all servers from a text.
func (p *Pool) Hide(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.names {
		text = p.conns[name].hide(text)
	}
	return text
}

// hiding returns what hides the secrets, or nil if there are none.
func hiding(secrets []string) *rpc.Hider {
	words := slices.DeleteFunc(slices.Clone(secrets), func(word string) bool { return word == "" })
	if len(words) == 0 {
		return nil
	}
	return rpc.NewHider(words)
}

func (sc *serverConn) hide(text string) string {
	if sc.secrets == nil {
		return text
	}
	return sc.secrets.Hide(text)
}

// hideError removes the server's secrets from an error.
func (sc *serverConn) hideError(err error) error {
	if err == nil || sc.secrets == nil {
		return err
	}
	var e *stages.Error
	if !errors.As(err, &e) {
		if text := sc.hide(err.Error()); text != err.Error() {
			return cleanError{text, err}
		}
		return err
	}
	own := *e
	own.Msg, own.Hint = sc.hide(e.Msg), sc.hide(e.Hint)
	if e.Err != nil {
		own.Err = cleanError{sc.hide(e.Err.Error()), e.Err}
	}
	return &own
}
