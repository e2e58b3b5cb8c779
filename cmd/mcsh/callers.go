package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/oidc"
	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream/clients"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// Environment variables for authentication flags, which other commands read too.
const (
	tokensVariable   = "MCSH_TOKENS"
	issuerVariable   = "MCSH_OIDC_ISSUER"
	audienceVariable = "MCSH_OIDC_AUDIENCE"
)

// authFlags select how callers authenticate.
type authFlags struct {
	tokens                 string
	issuer, audience, name string
	groups                 string // the claim
	scope                  string // space-separated
	public                 string
	secret                 string   // of that client; empty: it has none
	operator               string   // the claim and its word that make an operator
	client                 string   // of the issuer, for the console
	hosts                  []string // of public, under which the listener also accepts requests

	flags *pflag.FlagSet // of the command
}

// An authFlag is a flag with its variable, which is easier to set in a container.
type authFlag struct {
	value                 *string
	flag, variable, usage string // the usage ends with the variable
}

// table lists the flags.
func (a *authFlags) table() []authFlag {
	return []authFlag{
		{&a.tokens, "tokens", tokensVariable, "file with the tokens of HTTP callers, written by mcsh token new ("},
		{&a.issuer, "oidc-issuer", issuerVariable, "issuer (OpenID Connect) of the access tokens to accept, such as https://login.example.com ("},
		{&a.audience, "oidc-audience", audienceVariable, "audience that those tokens must have: their aud ("},
		{&a.scope, "oidc-scope", "MCSH_OIDC_SCOPE", "scopes that those tokens must have, separated by spaces ("},
		{&a.name, "oidc-name", "MCSH_OIDC_NAME", "claim that names a caller in logs, such as email (default: sub; "},
		{&a.groups, "oidc-groups-claim", "MCSH_OIDC_GROUPS_CLAIM", "claim with the groups of servers that a caller may use; a token without it may use none (default: callers have no groups; "},
		{&a.operator, "oidc-operator", "MCSH_OIDC_OPERATOR", "claim and word of those who see the runs of all callers in the console, such as roles=mcsh-operator (default: nobody; "},
		{&a.client, "oidc-client", "MCSH_OIDC_CLIENT", "client of the issuer with which people sign in to the console; its redirect address is that of the gateway with /signin/callback (default: they paste a token; "},
		{&a.public, "public-url", "MCSH_PUBLIC_URL", "address at which clients see the gateway, such as https://mcp.example.com/mcp (default: their Host; "},
	}
}

func (a *authFlags) add(cmd *cobra.Command) {
	a.flags = cmd.Flags()
	for _, row := range a.table() {
		a.flags.StringVar(row.value, row.flag, "", row.usage+"$"+row.variable+")")
	}
	_ = cmd.MarkFlagFilename("tokens") // the flag exists
}

// resolve takes values from the variables for flags that are not given, and checks them. A value that is set but empty is
// an error: it must not disable authentication.
func (a *authFlags) resolve(p *program, l *listenFlags) error {
	for _, row := range a.table() {
		given, from := a.flags.Changed(row.flag), "--"+row.flag
		if value, set := p.env[row.variable]; set && !given && l.address != "" {
			*row.value, given, from = value, true, "$"+row.variable
		}
		if given && strings.TrimSpace(*row.value) == "" {
			return usageError("give it a value, or leave it out", "%s is empty: callers would not be checked", from)
		}
	}
	a.secret = p.env[clientSecretVariable]
	return a.check(l)
}

// clientSecretVariable holds the secret of --oidc-client, if it has one. There is no flag: others see the arguments of a process.
const clientSecretVariable = "MCSH_OIDC_CLIENT_SECRET"

// enabled reports whether callers must authenticate.
func (a *authFlags) enabled() bool { return a.tokens != "" || a.issuer != "" }

// check refuses flags that contradict each other.
func (a *authFlags) check(l *listenFlags) error {
	oidcs := a.audience + a.scope + a.name + a.groups + a.operator + a.client
	switch {
	case a.issuer == "" && oidcs != "":
		return usageError("add --oidc-issuer, or leave out the others", "--oidc-audience, --oidc-scope, --oidc-name, --oidc-groups-claim, --oidc-operator and --oidc-client need an issuer")
	case a.issuer != "" && a.audience == "":
		return usageError("give the identifier of this gateway there, mostly its public address with /mcp",
			"--oidc-issuer needs --oidc-audience: without it a token for any other service of the issuer would be accepted here")
	case a.enabled() && l.address == "":
		return usageError("add --listen, or leave out the flags of authentication", "standard input has one client, which does not authenticate")
	case a.enabled() && l.noAuth:
		return usageError("leave one of them out", "--no-auth turns authentication off, and --tokens or --oidc-issuer turns it on")
	}
	return a.checkPublic()
}

// checkPublic checks the public address and removes the path of the endpoint from it.
func (a *authFlags) checkPublic() error {
	if a.public == "" {
		return nil
	}
	u, err := parseEndpoint("--public-url", a.public)
	if err != nil {
		return err
	}
	a.public, a.hosts = u.String(), []string{u.Hostname()}
	return nil
}

// parseEndpoint reads the address of a gateway from a flag, and leaves out the path of the endpoint.
func parseEndpoint(flag, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, usageError("such as https://mcp.example.com/mcp", "%s: want an http or https address with only a host and a path", flag)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/mcp")
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

// guard returns the authentication in front of the endpoint, or nil if there is none. It follows the file and the issuer
// until ctx is done; wait returns after that.
func (a *authFlags) guard(ctx context.Context, log *zap.Logger, ended func(id string)) (g *auth.Guard, wait func(), err error) {
	var following sync.WaitGroup
	if !a.enabled() {
		return nil, following.Wait, nil
	}
	open := []string{"/healthz", "/readyz"} // they only say that the gateway runs
	g = &auth.Guard{Open: open, Refused: logRefusal(log)}
	if a.tokens != "" {
		file, err := openTokens("--tokens", a.tokens, log, ended)
		if err != nil {
			return nil, following.Wait, err
		}
		g.Verifiers = append(g.Verifiers, file)
		following.Go(func() { file.Follow(ctx) })
	}
	if a.issuer != "" {
		issuer, err := a.openIssuer(log, g)
		if err != nil {
			return nil, following.Wait, err
		}
		following.Go(func() { issuer.Follow(ctx) })
	}
	return g, following.Wait, nil
}

// people returns the issuer with which people sign in to the console; nil: they paste a token.
func (a *authFlags) people(guard *auth.Guard) ui.Issuer {
	if guard == nil || a.client == "" {
		return nil
	}
	return &consoleIssuer{name: a.issuer, server: signin.Server{
		Name: "console", URL: a.issuer, HTTP: signin.NewHTTP(signin.Options{Server: a.issuer, Trusted: []string{a.issuer}, Proxy: http.ProxyFromEnvironment}),
		Settings: signin.Settings{
			Issuer: a.issuer, ClientID: a.client, ClientSecret: a.secret, Scopes: append([]string{"openid"}, strings.Fields(a.scope)...),
		},
	}, audience: a.audience}
}

// logRefusal logs a refused request.
func logRefusal(log *zap.Logger) func(*http.Request, *auth.Refusal) {
	return func(r *http.Request, why *auth.Refusal) {
		log.Info("a request was refused", zap.String("from", r.RemoteAddr), zap.String("method", r.Method),
			zap.Int("status", why.Status), zap.String("why", why.Text))
	}
}

// openTokens opens the file of a flag.
func openTokens(flag, path string, log *zap.Logger, ended func(id string)) (*tokens.File, error) {
	file, err := tokens.Open(path, tokens.Options{
		Notify: func(text string) { log.Warn(flag + ": " + text) },
		Ended:  ended,
	})
	if err != nil {
		return nil, configError(tokens.Hint(err), fmt.Errorf("%s: %w", flag, err))
	}
	if file.Len() == 0 {
		log.Warn(flag + ": there is no token in " + path + ": no caller can authenticate with one until mcsh token new NAME --file " + path + " makes it")
	}
	return file, nil
}

// openIssuer makes the issuer a verifier of the guard.
func (a *authFlags) openIssuer(log *zap.Logger, g *auth.Guard) (*oidc.Issuer, error) {
	issuer, err := oidc.New(oidc.Options{
		Issuer: a.issuer, Audience: a.audience, Scopes: strings.Fields(a.scope), Name: a.name, Groups: a.groups, Operator: a.operator, Proxy: http.ProxyFromEnvironment,
		Notify: func(text string) { log.Warn("--oidc-issuer: " + text) },
	})
	if err != nil {
		return nil, usageError("give it as the issuer's tokens name it (iss)", "--oidc-issuer: %w", err)
	}
	g.Verifiers = append(g.Verifiers, issuer)
	g.Resource = &auth.Resource{Issuer: a.issuer, Scopes: strings.Fields(a.scope), Public: a.public}
	return issuer, nil
}

// plaintextWarning returns a warning for a gateway with tokens if other machines can reach it and no proxy in front is known
// to encrypt.
func (a *authFlags) plaintextWarning(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil || isLoopback(host) || strings.HasPrefix(a.public, "https://") {
		return ""
	}
	return "clients send tokens to this address without encryption, and the network can read them: put a TLS proxy in front, and give its address with --public-url https://..."
}

// tokenLong is the long help of mcsh token.
const tokenLong = `Make, list and remove the tokens with which callers authenticate to mcsh serve --listen. The file holds a name and a
hash per line and no token, so a new token is printed only once. A gateway with --tokens FILE notices changes at once.`

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
	entry.Operator = wish.operator
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
