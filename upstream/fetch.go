package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// load reads the whole list from the server, on a new session if the server has lost the current one.
func (c *catalog) load(old *toolList) (*toolList, error) {
	for again := false; ; again = true {
		s, err := c.conn.session(c.conn.life)
		if err == nil {
			err = c.conn.refuseGateway(s.sdk)
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
		return nil, unavailable(c.conn.server.Name, s.transport, err)
	}
}

// read reads the whole list on one session.
func (c *catalog) read(s *session, old *toolList) (*toolList, error) {
	ctx, cancel := context.WithTimeout(c.conn.life, c.conn.pool.options.ListTimeout)
	defer cancel()
	list := &toolList{reader: newReader(c.conn), byName: map[string]*tool{}, fetched: time.Now(), ttl: c.conn.pool.options.ListTTL, routed: s.routed()}
	seen := map[string]bool{} // cursors
	for cursor, page := "", 1; ; page++ {
		raw, err := s.list(ctx, cursor)
		if err != nil {
			return nil, err
		}
		if cursor, err = list.addPage(raw, old); err != nil {
			return nil, err
		}
		switch {
		case cursor == "" || list.cut != "":
			return list, nil
		case len(cursor) > maxCursor:
			list.cutAt(fmt.Sprintf("the name of its next page is longer than %d bytes", maxCursor))
			return list, nil
		case seen[cursor]:
			list.cutAt("the server gives the same page again")
			return list, nil
		case page >= max(leastPages, list.reader.limits.Tools/100):
			list.cutAt(fmt.Sprintf("it has more than %d pages, one for each hundred tools that it may have (%s)", page, list.moreTools()))
			return list, nil
		}
		seen[cursor] = true
	}
}
