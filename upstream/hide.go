package upstream

// Hide takes out of a text what is secret in the configuration of any server.
func (p *Pool) Hide(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.names {
		text = p.units[name].hide(text)
	}
	return text
}
