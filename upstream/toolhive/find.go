package toolhive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
)

// A notFound says where ToolHive was looked for.
type notFound struct {
	tries  []string // every address, and what is wrong there
	broken bool     // something is wrong at one of them, rather than nothing there
}

func (e *notFound) Error() string {
	return "ToolHive was not found (" + strings.Join(e.tries, "; ") + ")"
}

// find opens the API at the address that a person gave, or else at the first one where it proves itself.
func (o *Options) find(ctx context.Context) (*api, error) {
	if o.URL != "" {
		a, err := parseAddress(o.URL)
		if err != nil {
			return nil, err
		}
		a.given, a.from = true, cmp.Or(o.URLFrom, "the settings")
		return o.open(ctx, a)
	}
	miss := &notFound{}
	for _, a := range o.addresses() {
		api, err := o.open(ctx, a)
		if err == nil {
			return api, nil
		}
		where := a.from
		if a.guess() {
			where = a.String()
		}
		miss.tries = append(miss.tries, fmt.Sprintf("%s: %v", where, err))
		// Any program may listen at a guess.
		miss.broken = miss.broken || !isAbsence(err) && !(a.guess() && errors.Is(err, errNotToolHive))
	}
	return nil, miss
}

// isAbsence reports whether an error says that nothing is there.
func isAbsence(err error) bool {
	_, noHost := errors.AsType[*net.DNSError](err)
	return noHost || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
