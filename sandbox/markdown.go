package sandbox

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// The bounds of the conversion of a page.
const (
	pageTimeout = 10 * time.Second
	pageGrowth  = 8 // the Markdown is at most so many times as long as the page, beyond a small page
	smallPage   = 64 << 10
	pageMemory  = 256 << 20
)

var errLongPage = errors.New("its Markdown is much longer than the page")

// Markdown converts an HTML page, whose links are relative to base, in a worker of its own. It waits for other pages only:
// a run that holds a worker must not wait for another run, and a page may take longer than the check of a plan can wait.
func (p *Pool) Markdown(ctx context.Context, page, base string) (string, error) {
	give, err := p.pages.take(ctx, "")
	if err != nil {
		return "", err
	}
	s, err := p.open(ctx, stages.Anonymous, nil, give)
	if err != nil {
		return "", err
	}
	defer s.Close()
	chain := p.budget.chain()
	chain.Memory = min(chain.Memory, pageMemory)
	chain.Commands = []wire.Command{{Name: programs.HTML, Argv: []string{programs.HTML, "--", base}, Timeout: pageTimeout}}
	prepared, err := wire.Prepare(chain)
	if err != nil {
		return "", err
	}
	f := &filter{session: s, chain: chain.Commands, args: [][]string{nil}, prepared: prepared}
	out := &bounded{max: pageGrowth*len(page) + smallPage, full: errLongPage}
	if err := f.run(ctx, strings.NewReader(page), out); err != nil {
		return "", converted(err)
	}
	return string(out.b), nil
}

// converted says why a page was not converted, without the name of the program.
func converted(err error) error {
	e, ok := errors.AsType[*stages.Error](err)
	if !ok {
		return err
	}
	if _, said, ok := strings.Cut(e.Msg, ": "); ok && e.Code == stages.CommandFailed {
		return errors.New(said)
	}
	return errors.New(e.Msg)
}
