package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/clients"
)

// tokenFile is the flag --file.
type tokenFile struct{ path string }

func (t *tokenFile) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.path, "file", "", "the file of tokens (default: $"+tokensVariable+", else mcsh/tokens in the user's configuration)")
	_ = cmd.MarkFlagFilename("file") // the flag exists
}

// find returns the path of the file.
func (t tokenFile) find(p *program) (string, error) {
	if path := cmp.Or(t.path, p.env[tokensVariable]); path != "" {
		return path, nil
	}
	if dir := p.userConfig(); dir != "" {
		return filepath.Join(dir, "mcsh", "tokens"), nil
	}
	return "", usageError("name it with --file", "the place of the file of tokens is not known: HOME is not set")
}

func (t tokenFile) read(p *program) ([]tokens.Entry, error) {
	path, err := t.find(p)
	if err != nil {
		return nil, err
	}
	data, err := namedfile.Read(path, tokens.MaxFile)
	if err != nil {
		hint := "name the file with --file"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "mcsh token new NAME makes it, or name another with --file"
		}
		return nil, configError(hint, err)
	}
	entries, err := tokens.Parse(data)
	if err != nil {
		return nil, configError("fix it; mcsh token new writes valid lines", fmt.Errorf("%s: %w", path, err))
	}
	return entries, nil
}

type tokenJSON struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Groups  []string  `json:"groups,omitempty"` // that its caller may use; *: all servers
	Expires time.Time `json:"expires,omitzero"`
	Expired bool      `json:"expired,omitempty"`

	Operator bool   `json:"operator,omitempty"` // its caller sees the runs of all callers in the console
	Token    string `json:"token,omitempty"`    // only of a new token
	File     string `json:"file,omitempty"`
}

func tokenRow(e tokens.Entry) tokenJSON {
	row := tokenJSON{Name: e.Name, ID: e.ID(), Expires: e.Expires, Expired: e.Ended(time.Now()), Operator: e.Operator}
	if e.Groups != "" {
		row.Groups = strings.Split(e.Groups, ",")
	}
	return row
}

func (p *program) tokenNewCommand() *cobra.Command {
	var file tokenFile
	var wish tokenWish
	cmd := &cobra.Command{
		Use:     "new NAME",
		Short:   "Make a token for a caller and print it, once",
		Example: "  mcsh token new alice\n  mcsh token new ci --expires 90d --file tokens\n  mcsh token new alice --another\n  mcsh token new bob --groups dev,ops",
		Args:    withFirst(cobra.ExactArgs(1)),
	}

	cmd.Flags().StringVar(&wish.expires, "expires", "", "when the token expires: a duration such as 12h or 90d, or a time such as 2027-01-31 or 2027-01-31T12:00:00Z (default: never)")
	cmd.Flags().BoolVar(&wish.another, "another", false, "make one more token for a caller who has one; both are the same caller")
	cmd.Flags().StringSliceVar(&wish.groups, "groups", nil, "groups of servers that the caller may use, such as dev,ops, or * for all servers (default: all, as long as no token has groups)")
	cmd.Flags().BoolVar(&wish.operator, "operator", false, "the caller sees the runs of all callers in the console")
	return command(cmd, func(ctx context.Context, args []string) error {
		return p.newToken(ctx, file, args[0], wish)
	}, file.add, p.jsonFlag("print one JSON object"))
}

// A tokenWish says what token somebody wants.
type tokenWish struct {
	expires           string
	groups            []string
	another, operator bool
}

func (p *program) newToken(ctx context.Context, file tokenFile, name string, wish tokenWish) error {
	path, err := file.find(p)
	if err != nil {
		return err
	}
	end, err := parseExpiry(wish.expires, time.Now())
	if err != nil {
		return usageError("such as 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z", "--expires %q: %w", texts.Fit(wish.expires, 40), err)
	}
	token, entry, err := tokens.New(name, end)
	if err != nil {
		return usageError("such as alice, ci or alice@example.com", "%w", err)
	}
	if len(wish.groups) > 0 {
		if entry.Groups, err = tokens.ParseGroups(wish.groups); err != nil {
			return usageError("such as --groups dev,ops", "--groups: %w", err)
		}
	}
	if entry.Operator = wish.operator; entry.Operator && entry.Groups != "" && entry.Groups != "*" {
		fmt.Fprintln(p.stderr, "warning: a caller who is limited to groups is no operator in the console")
	}
	if p.discarded() {
		return usageError("show standard output, or write it to a file", "nobody would see the token: standard output is closed, or %s", os.DevNull)
	}
	shown := false
	err = changeTokens(ctx, path, func(old []byte, has []tokens.Entry) ([]byte, error) {
		if !wish.another && slices.ContainsFunc(has, func(e tokens.Entry) bool { return e.Name == name }) {
			return nil, usageError("--another makes one more for the same caller; mcsh token rm "+name+" removes the present one", "%s has a token in %s", name, path)
		}
		if err := p.showToken(token, path, entry); err != nil {
			return nil, err // the token was not shown, so it must not work
		}
		shown = true
		return tokens.Add(old, entry), nil
	})
	switch {
	case err != nil && shown:
		fmt.Fprintln(p.stderr, "the printed token could not be stored, and is not valid")
	case err == nil && !p.json:
		fmt.Fprintf(p.stderr, "clients send it as a header: Authorization: Bearer TOKEN; the gateway takes it with: mcsh serve --listen ADDRESS --tokens %s\n", path)
	}
	return err
}

// showToken prints a token before it is stored.
func (p *program) showToken(token, path string, e tokens.Entry) error {
	row := tokenRow(e)
	row.Token, row.File = token, path
	var err error
	if p.json {
		err = writeJSON(p.stdout.w, row)
	} else {
		fmt.Fprintf(p.stderr, "the token of %s, shown only this once (%s holds its hash):\n", e.Name, path)
		_, err = fmt.Fprintln(p.stdout.w, token)
	}
	if err != nil {
		// %v, not %w: a reader that left must not end the command as a success.
		return &failure{exitFailed, fmt.Errorf("no token is made: %v", err), "show standard output, or write it to a file"}
	}
	return nil
}

// discarded reports whether standard output is discarded. Go opens a closed one as the null device.
func (p *program) discarded() bool {
	f, ok := p.stdout.w.(*os.File)
	if !ok {
		return false
	}
	out, err := f.Stat()
	null, none := os.Stat(os.DevNull)
	return err != nil || none == nil && os.SameFile(out, null)
}

// parseExpiry reads the end of a token.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var end time.Time
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return end, errors.New("that is not a number of days below 65536")
		}
		end = now.AddDate(0, 0, int(n))
	} else if span, err := time.ParseDuration(text); err == nil {
		end = now.Add(span)
	} else if day, err := time.Parse(time.DateOnly, text); err == nil {
		end = day
	} else if end, err = time.Parse(time.RFC3339, text); err != nil {
		return end, errors.New("that is neither a time nor a duration")
	}
	switch {
	case !end.After(now):
		return end, errors.New("that time has passed")
	case end.Year() > 9999:
		return end, errors.New("that is too far away")
	}
	return end, nil
}

// changeTokens rewrites a valid file of tokens.
func changeTokens(ctx context.Context, path string, change func(old []byte, has []tokens.Entry) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(ctx, importWait)
	defer cancel()
	err := clients.Rewrite(ctx, path, func(old []byte) ([]byte, error) {
		if len(old) == 0 {
			return change(old, nil)
		}
		has, err := tokens.Parse(old)
		if err != nil {
			return nil, configError("fix it first; it is left as it is", fmt.Errorf("%s: %w", path, err))
		}
		return change(old, has)
	})
	if err != nil && !classified(err) {
		return configError("name another with --file, or let this user write it", err)
	}
	return err
}

func (p *program) tokenListCommand() *cobra.Command {
	var file tokenFile
	cmd := &cobra.Command{Use: "ls", Short: "List callers, without their tokens", Args: cobra.NoArgs}
	return command(cmd, func(context.Context, []string) error {
		entries, err := file.read(p)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, e := range entries {
			row, end := tokenRow(e), "does not expire"
			switch {
			case p.json:
				p.print(row, "")
				continue
			case row.Expired:
				end = "expired " + e.Expires.Format(time.RFC3339)
			case !row.Expires.IsZero():
				end = "until " + e.Expires.Format(time.RFC3339)
			}
			cells := []string{e.Name, e.ID(), end}
			if e.Groups != "" {
				cells = append(cells, "groups "+e.Groups)
			}
			if e.Operator {
				cells = append(cells, "operator")
			}
			rows = append(rows, cells)
		}
		return p.printTable(rows, 5)
	}, file.add, p.jsonFlag("print one JSON object per token"))
}

// groupsIn reports whether a valid file of tokens names groups.
func groupsIn(file []byte) bool {
	entries, err := tokens.Parse(file)
	return err == nil && tokens.Grouped(entries)
}

func (p *program) tokenRemoveCommand() *cobra.Command {
	var file tokenFile
	cmd := &cobra.Command{
		Use:     "rm NAME [ID]",
		Short:   "Remove the tokens of a caller, or the token with an id of mcsh token ls",
		Example: "  mcsh token rm alice\n  mcsh token rm alice 1f3870be",
		Args:    withFirst(cobra.RangeArgs(1, 2)),
	}
	names := func(context.Context) []string {
		entries, _ := file.read(p) // a completion cannot report an error
		return slices.Compact(convert(entries, func(e tokens.Entry) string { return e.Name }))
	}
	return command(cmd, func(ctx context.Context, args []string) error {
		name, id := args[0], strings.Join(args[1:], "")
		path, err := file.find(p)
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil {
			return configError("name the file with --file", err)
		}
		var removed []tokens.Entry
		unlimited := false
		err = changeTokens(ctx, path, func(old []byte, had []tokens.Entry) ([]byte, error) {
			var left []byte
			left, removed = tokens.Remove(old, name, id)
			if len(removed) == 0 {
				return nil, usageError("mcsh token ls shows what there is", "%s has no token %s in %s", name, cmp.Or(id, "at all"), path)
			}
			unlimited = tokens.Grouped(had) && !groupsIn(left)
			return left, nil
		})
		if err != nil {
			return err
		}
		if unlimited {
			fmt.Fprintf(p.stderr, "warning: no token names groups any more: from its next start a gateway shows all servers to all callers of %s\n", path)
		}
		for _, e := range removed {
			p.print(tokenRow(e), "")
			if !p.json {
				fmt.Fprintf(p.stderr, "%s %s is removed: a running gateway now refuses it, and ends its sessions\n", e.Name, e.ID())
			}
		}
		return nil
	}, file.add, completing(firstArgument, names), p.jsonFlag("print one JSON object per removed token"))
}
