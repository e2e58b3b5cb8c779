package upstream

import (
	"context"
	"errors"

	"github.com/mcsh-dev/mcsh/stages"
)

// Hide removes the secrets of the configuration of all servers from a text.
func (p *Pool) Hide(text string) string {
	for _, sc := range p.all(context.Background()) {
		text = sc.hide(text)
	}
	return text
}

func (sc *serverConn) hide(text string) string { return sc.secrets.Hide(text) }

// hideError removes the server's secrets from an error.
func (sc *serverConn) hideError(err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*stages.Error](err)
	if !ok {
		return cleanError{sc.hide(err.Error()), err}
	}
	own := *e
	own.Msg, own.Hint = sc.hide(e.Msg), sc.hide(e.Hint)
	if e.Err != nil {
		own.Err = cleanError{sc.hide(e.Err.Error()), e.Err}
	}
	return &own
}
