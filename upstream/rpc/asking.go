package rpc

// maxLeft is how many requests are remembered that ended without a response. With so many, no question is attributed any
// more.
const maxLeft = 1 << 10

// asking is the request in whose middle the server asks now, nil if that is not certain. Questions name no request: there
// must be only one, and none that has ended without a response, since the server may still be working on it.
func (c *Conn) asking() *Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.left) > 0 {
		return nil
	}
	var only *Request
	for _, w := range c.pending {
		if w.request.Ask == nil {
			continue
		}
		if only != nil {
			return nil
		}
		only = w.request
	}
	return only
}

// settle forgets a request that has ended without a response: the server has answered it after all, or has never seen it.
func (c *Conn) settle(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.left) < maxLeft {
		delete(c.left, id)
	}
}
