package upstream

// loginOf names the login that requests to a server are made with; "": there is none. It reports false if that is not known.
func (s *Server) loginOf() (login string, known bool) {
	if s.Endpoint == nil {
		return "", true
	}
	login, err := s.Endpoint.LoginID()
	return login, err == nil
}

// latest returns the connection that stands for the server now. After a login as another account, or a logout, it is a new one:
// what the former account was shown, and its sessions, are nothing for the next one. Calls in flight end on the old connection.
func (p *Pool) latest(sc *serverConn) *serverConn {
	login, known := sc.server.loginOf()
	if !known || login == sc.login() {
		return sc
	}
	next, replaced := p.replace(sc)
	if replaced {
		p.offersChanged()
		p.serversChanged()
	}
	return next
}

// replace puts a new connection in the place of one, unless somebody has done so.
func (p *Pool) replace(sc *serverConn) (now *serverConn, replaced bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now := p.conns[sc.server.Name]; {
	case now == nil, p.life.Err() != nil:
		return sc, false
	case now != sc:
		return now, false
	}
	now = p.anew(sc.origin, sc)
	p.conns[sc.server.Name] = now
	p.generation.Add(1)
	sc.drain()
	p.subscriptions.replaced(sc)
	return now, true
}

// latestAll are the connections that stand for all servers now, sorted by name.
func (p *Pool) latestAll() []*serverConn {
	list := p.connections()
	for i, sc := range list {
		list[i] = p.latest(sc)
	}
	return list
}
