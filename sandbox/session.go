package sandbox

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// defaultTimeout is that of a command that names none.
const defaultTimeout = 30 * time.Second

// A session is one worker that serves one run.
type session struct {
	pool   *Pool
	client *wire.Client
	places chan struct{} // holds one value for this session
	slots  chan struct{} // holds one value for each chain that runs

	keeping chan struct{} // holds one value for each input on its way
}

func newSession(p *Pool, client *wire.Client) *session {
	return &session{
		pool: p, client: client, slots: make(chan struct{}, wire.Slots), keeping: make(chan struct{}, wire.MaxInputs),
	}
}

// Prepare implements [stages.Session].
func (s *session) Prepare(chain []stages.Command, used func(i int, u stages.Usage)) (stages.Filter, error) {
	if len(chain) == 0 {
		return nil, stages.Errorf(stages.Internal, "", "preparing a chain of no commands")
	}
	message := s.pool.budget.chain()
	message.Commands = make([]wire.Command, len(chain))
	stops := chain[len(chain)-1].Hasty // something later may stop early
	for i := len(chain) - 1; i >= 0; i-- {
		inv, err := s.pool.parse(chain[i])
		if err != nil {
			return nil, at(err, i, chain[i].Name)
		}
		if stops {
			inv = inv.LineBuffered()
		}
		p, _ := programs.Find(chain[i].Name)
		stops = stops || p.StopsEarly(inv)
		message.Commands[i] = command(chain[i], inv)
	}
	id, err := s.client.Prepare(message)
	if err != nil {
		return nil, unprepared(err, chain)
	}
	f := &filter{session: s, chain: message.Commands, id: id, used: used}
	for _, c := range chain {
		f.args = append(f.args, c.Args)
	}
	return f.run, nil
}

// unprepared explains why a chain did not reach the worker.
func unprepared(err error, chain []stages.Command) error {
	name := chain[0].Name
	if errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrTooMany) {
		return at(stages.Errorf(stages.LimitExceeded, "use fewer commands next to each other",
			"preparing neighbouring commands: %w", err), 0, name)
	}
	return at(lostError(err), 0, name)
}

// at says which command of the chain an error is about.
func at(err error, i int, name string) error {
	var e *stages.Error
	if !errors.As(err, &e) {
		e = stages.Errorf(stages.Internal, "", "%w", err)
	}
	copied := *e
	copied.Place, copied.Label = stages.Place(strconv.Itoa(i+1)), "command "+name
	return &copied
}

// Close implements [stages.Session].
func (s *session) Close() error {
	err := s.client.Close()
	s.pool.release(s)
	return err
}

// slot waits until the worker has room for one more chain.
func (s *session) slot(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-s.client.Done():
		return lostError(s.client.Err())
	case <-ctx.Done():
		return cancelled(ctx)
	}
}
