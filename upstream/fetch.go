package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// load reads the whole list from the server, on a new session if the server has lost the current one.
func (c *toolCache) load(old *toollist.List) (*toollist.List, error) {
	for again := false; ; again = true {
		s, err := c.conn.session(c.conn.life)
		if err == nil {
			err = c.conn.refuseGateway(s.SDK)
		}
		if err != nil {
			return nil, err
		}
		list, err := c.read(s, old)
		if err == nil {
			return list, nil
		}
		failure, _ := errors.AsType[*rpc.Failure](err)
		if failure != nil && failure.Lost {
			if c.conn.discard(s); !again {
				continue
			}
		}
		return nil, unavailable(c.conn.server.Name, s.Transport, err)
	}
}

// read reads the whole list on one session.
func (c *toolCache) read(s *sessions.Session, old *toollist.List) (*toollist.List, error) {
	ctx, cancel := context.WithTimeout(c.conn.life, c.conn.pool.options.ListTimeout)
	defer cancel()
	list := toollist.New(c.conn.reader(), c.conn.pool.options.ListTTL, s.Routed())
	cut, err := pages(c.conn.pool.options.Tools, func(cursor string) (next string, err error) {
		raw, err := s.List(ctx, "tools/list", cursor)
		if err != nil {
			return "", fmt.Errorf(listErrorPrefix+"%w", err)
		}
		if next, err = list.AddPage(raw, old); list.Cut != "" {
			next = ""
		}
		return next, err
	})
	if err != nil {
		return nil, err
	}
	if cut != "" {
		list.CutAt(cut)
	}
	return list, nil
}

// pages fetches the pages of a list until there is no next one. cut says why it has stopped before that, if it has; most is
// how many things the list may have.
func pages(most int, fetch func(cursor string) (next string, err error)) (cut string, err error) {
	seen := map[string]bool{} // cursors
	for cursor, page := "", 1; ; page++ {
		if cursor, err = fetch(cursor); err != nil || cursor == "" {
			return "", err
		}
		switch {
		case len(cursor) > maxCursor:
			return fmt.Sprintf("the name of its next page is longer than %d bytes", maxCursor), nil
		case seen[cursor]:
			return "the server gives the same page again", nil
		case page >= max(leastPages, most/100):
			return fmt.Sprintf("it has more than %d pages, one for each hundred tools that it may have (%s)", page, toollist.MoreTools(most)), nil
		}
		seen[cursor] = true
	}
}
