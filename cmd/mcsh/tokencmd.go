package main

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
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/upstream/clients"
)

const tokenLong = `Make the tokens by which callers of mcsh serve --listen show who they are. The file holds a name and a hash per
line, never a token: what is printed here is printed once. A gateway that runs with --tokens FILE sees changes at once.`

func (p *program) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and remove the tokens of callers",
		Long:  tokenLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("mcsh token --help shows more", "what about tokens? new, ls or rm")
		},
	}
	cmd.AddCommand(p.tokenNewCommand(), p.tokenListCommand(), p.tokenRemoveCommand())
	return cmd
}

// tokenFile is the file that is meant.
type tokenFile struct{ path string }

func (t *tokenFile) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.path, "file", "", "the file of tokens (default: $"+tokensVariable+", else mcsh/tokens in the user's configuration)")
	_ = cmd.MarkFlagFilename("file") // the flag exists
}

// open is the path of the file.
func (t tokenFile) open(p *program) (string, error) {
	if path := cmp.Or(t.path, p.env[tokensVariable]); path != "" {
		return path, nil
	}
	if dir := p.userConfig(); dir != "" {
		return filepath.Join(dir, "mcsh", "tokens"), nil
	}
	return "", usageError("name it with --file", "there is no place for the file of tokens: HOME is not set")
}

// tokenJSON is a token as --json prints it.
type tokenJSON struct {
	Name    string     `json:"name"`
	ID      string     `json:"id"`
	Expires *time.Time `json:"expires,omitempty"`
	Expired bool       `json:"expired,omitempty"`
	Token   string     `json:"token,omitempty"` // of one that was just made
	File    string     `json:"file,omitempty"`
}

func tokenRow(e tokens.Entry) tokenJSON {
	row := tokenJSON{Name: e.Name, ID: e.ID(), Expired: e.Ended(time.Now())}
	if !e.Expires.IsZero() {
		row.Expires = &e.Expires
	}
	return row
}

func (p *program) tokenNewCommand() *cobra.Command {
	var file tokenFile
	var expires string
	var another bool
	cmd := &cobra.Command{
		Use:     "new NAME",
		Short:   "Make a token for a caller and print it, once",
		Example: "  mcsh token new alice\n  mcsh token new ci --expires 90d --file tokens\n  mcsh token new alice --another",
		Args:    cobra.ExactArgs(1),
	}
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		return p.newToken(ctx, file, args[0], expires, another)
	})
	file.add(cmd)
	cmd.Flags().StringVar(&expires, "expires", "", "when it ends: after a time such as 12h or 90d, or at one such as 2027-01-31 or 2027-01-31T12:00:00Z (default: never)")
	cmd.Flags().BoolVar(&another, "another", false, "make one more token for a caller who has one, to be the same caller with both")
	p.addJSON(cmd, "print one JSON object")
	return cmd
}

func (p *program) newToken(ctx context.Context, file tokenFile, name, expires string, another bool) error {
	path, err := file.open(p)
	if err != nil {
		return err
	}
	end, err := endOf(expires, time.Now())
	if err != nil {
		return usageError("such as 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z", "--expires %q: %w", cut(expires, 40), err)
	}
	token, entry, err := tokens.New(name, end)
	if err != nil {
		return usageError("such as alice, ci or alice@example.com", "%w", err)
	}
	if p.unread() {
		return usageError("let it be seen, or write it to a file", "nobody would see the token: standard output is closed, or %s", os.DevNull)
	}
	shown := false
	err = changeTokens(ctx, path, func(old []byte, has []tokens.Entry) ([]byte, error) {
		if !another && slices.ContainsFunc(has, func(e tokens.Entry) bool { return e.Name == name }) {
			return nil, usageError("--another makes one more for the same caller; mcsh token rm "+name+" takes away what there is", "%s has a token in %s", name, path)
		}
		if err := p.showToken(token, path, entry); err != nil {
			return nil, err // a token that nobody has seen lets nobody in
		}
		shown = true
		return tokens.Add(old, entry), nil
	})
	switch {
	case err != nil && shown:
		fmt.Fprintln(p.stderr, "the token that was printed could not be kept, and lets nobody in")
	case err == nil && !p.json:
		fmt.Fprintf(p.stderr, "clients send it as a header: Authorization: Bearer TOKEN; the gateway takes it with: mcsh serve --listen ADDRESS --tokens %s\n", path)
	}
	return err
}

// showToken prints a token that is about to be kept.
func (p *program) showToken(token, path string, e tokens.Entry) error {
	row := tokenRow(e)
	row.Token, row.File = token, path
	var err error
	if p.json {
		err = writeJSON(p.stdout, row)
	} else {
		fmt.Fprintf(p.stderr, "the token of %s, which is shown this once (%s holds its hash):\n", e.Name, path)
		_, err = fmt.Fprintln(p.stdout, token)
	}
	if err != nil {
		// It is told whatever err is: a reader that leaves does not expect that.
		return &failure{exitFailed, fmt.Errorf("no token is made: %v", err), "let it be seen, or write it to a file"}
	}
	return nil
}

// unread reports whether nobody can see what is printed. A standard output that is closed is opened as the null device
// before the program begins.
func (p *program) unread() bool {
	f, ok := p.stdout.(*os.File)
	if !ok {
		return false
	}
	out, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(out, null)
}

// endOf reads when a token ends.
func endOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var end time.Time
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return end, errors.New("that is no number of days below 65536")
		}
		end = now.AddDate(0, 0, int(n))
	} else if span, err := time.ParseDuration(text); err == nil {
		end = now.Add(span)
	} else if day, err := time.Parse(time.DateOnly, text); err == nil {
		end = day
	} else if end, err = time.Parse(time.RFC3339, text); err != nil {
		return end, errors.New("that is neither a time nor how long until then")
	}
	switch {
	case !end.After(now):
		return end, errors.New("that is over already")
	case end.Year() > 9999:
		return end, errors.New("that is too far away")
	}
	return end, nil
}

// changeTokens rewrites a file of tokens, which must be right.
func changeTokens(ctx context.Context, path string, change func(old []byte, has []tokens.Entry) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(ctx, importWait)
	defer cancel()
	err := clients.Rewrite(ctx, path, func(old []byte) ([]byte, error) {
		var has []tokens.Entry
		if len(old) > 0 {
			var err error
			if has, err = tokens.Parse(old); err != nil {
				return nil, configError("mend it first; it is left as it is", fmt.Errorf("%s: %w", path, err))
			}
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
	cmd.RunE = work(func(context.Context, []string) error { return p.listTokens(file) })
	file.add(cmd)
	p.addJSON(cmd, "print one JSON object per token")
	return cmd
}

func (p *program) listTokens(file tokenFile) error {
	path, err := file.open(p)
	if err != nil {
		return err
	}
	data, err := namedfile.Read(path, tokens.MaxFile)
	if err != nil {
		hint := "name the file with --file"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "mcsh token new NAME makes it, or name another with --file"
		}
		return configError(hint, err)
	}
	entries, err := tokens.Parse(data)
	if err != nil {
		return configError("mend it; mcsh token new writes lines as they should be", fmt.Errorf("%s: %w", path, err))
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		row := tokenRow(e)
		if p.json {
			if err := writeJSON(p.stdout, row); err != nil {
				return err
			}
			continue
		}
		end := "never ends"
		if row.Expires != nil {
			end = "until " + e.Expires.Format(time.RFC3339)
		}
		if row.Expired {
			end = "ended " + e.Expires.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", e.Name, e.ID(), end)
	}
	return table.Flush()
}

func (p *program) tokenRemoveCommand() *cobra.Command {
	var file tokenFile
	cmd := &cobra.Command{
		Use:     "rm NAME [ID]",
		Short:   "Take away the tokens of a caller, or the one with an id of mcsh token ls",
		Example: "  mcsh token rm alice\n  mcsh token rm alice 1f3870be",
		Args:    cobra.RangeArgs(1, 2),
	}
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		id := ""
		if len(args) > 1 {
			id = args[1]
		}
		return p.removeTokens(ctx, file, args[0], id)
	})
	file.add(cmd)
	p.addJSON(cmd, "print one JSON object per token that is removed")
	return cmd
}

func (p *program) removeTokens(ctx context.Context, file tokenFile, name, id string) error {
	path, err := file.open(p)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return configError("name the file with --file", err)
	}
	var removed []tokens.Entry
	err = changeTokens(ctx, path, func(old []byte, _ []tokens.Entry) ([]byte, error) {
		var left []byte
		left, removed = tokens.Remove(old, name, id)
		if len(removed) == 0 {
			return nil, usageError("mcsh token ls shows what there is", "%s has no token %s in %s", name, cmp.Or(id, "at all"), path)
		}
		return left, nil
	})
	if err != nil {
		return err
	}
	for _, e := range removed {
		if p.json {
			if err := writeJSON(p.stdout, tokenRow(e)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(p.stderr, "%s %s is removed: a gateway that runs lets it in no more, and ends its sessions\n", e.Name, e.ID())
	}
	return nil
}
