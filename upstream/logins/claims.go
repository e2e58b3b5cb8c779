package logins

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/store"
)

// endMark ends the name of an object that ends a claim.
const endMark = "-end"

// Times of claims. The holder of one asks the issuer within claimMost, has its answer within askWait, and has written it, or cannot
// write it, within changeWait. That is less than claimLife.
const (
	claimMost = 10 * time.Second // from before the claim is written until the issuer is asked
	claimLife = 2 * askWait      // of a claim that nothing ends, by the clock of a gateway that waits for it
	claimLook = time.Second      // at most, between two looks at the claim of another gateway

	sharedTurnWait = claimLife + 30*time.Second // it ends after a dead holder has lost its claim
)

// claimsOf is the folder of the claims of a login as it is. The name reveals nothing; a refreshed login has another folder.
func claimsOf(l Login) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{l.text(), l.AccessToken, l.RefreshToken}, "\x00")))
	return claimFolder + hex.EncodeToString(sum[:16]) + "/"
}

// lock implements [place]. The claim with the highest number counts, until there is its end. Nothing refreshes a login without tokens.
func (o *shared) lock(ctx context.Context, l Login, still func(context.Context) error) (turn, error) {
	if l.AccessToken == "" {
		return turn{end: func(outcome) {}}, nil
	}
	folder, seen, since := claimsOf(l), "", time.Now()
	for {
		last, err := o.lastClaim(ctx, folder)
		if err != nil {
			return turn{}, err
		}
		if last != seen {
			seen, since = last, time.Now()
		}
		if last == "" || strings.HasSuffix(last, endMark) || time.Since(since) > claimLife {
			t, err := o.claim(ctx, l, folder+numbered(numberOf(last)+1))
			if !errors.Is(err, store.ErrExists) {
				return t, err
			}
		}
		if err := pause(ctx, claimLook); err != nil {
			return turn{}, fmt.Errorf("waiting for others that refresh the login of %s: %w", l.Server, err)
		}
		if err := still(ctx); err != nil {
			return turn{}, err
		}
	}
}

// lastClaim returns the name of the claim that counts, or of its end; empty: there is none.
func (o *shared) lastClaim(ctx context.Context, folder string) (string, error) {
	names, err := o.names(ctx, folder)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[len(names)-1], nil
}

// claim writes a claim. The error is [store.ErrExists] if that of another gateway counts.
func (o *shared) claim(ctx context.Context, l Login, name string) (turn, error) {
	t := turn{until: time.Now().Add(claimMost), end: func(how outcome) { o.end(context.WithoutCancel(ctx), l, name, how) }}
	by := []byte(rand.Text())
	err := o.put(ctx, name, by)
	var names []string
	if err == nil {
		// The name is free again once others have deleted an earlier claim: then theirs has a higher number.
		names, err = o.names(ctx, claimsOf(l))
	}
	switch {
	case errors.Is(err, store.ErrExists):
		return turn{}, err
	case err != nil:
		// The claim may be there, or that of another gateway, which must not be ended.
		if o.has(context.WithoutCancel(ctx), name, by) {
			t.end(unchanged)
		}
		return turn{}, fmt.Errorf("claiming the refresh of the login of %s: %w", l.Server, err)
	case len(names) == 0 || names[len(names)-1] != name:
		return turn{}, store.ErrExists
	}
	o.remove(ctx, names[:len(names)-1])
	return t, nil
}

// has reports whether an object is known to have some content.
func (o *shared) has(ctx context.Context, name string, content []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, objectWait)
	defer cancel()
	there, err := o.objects.Get(ctx, name)
	return err == nil && bytes.Equal(there, content)
}

// end ends a claim. While a new login could not be written yet, the claim stays.
func (o *shared) end(ctx context.Context, l Login, name string, how outcome) {
	if how != unchanged {
		return
	}
	if _, err := indexOf(o.known().logins, l); err != nil {
		o.forget(ctx, l)
		return
	}
	_ = o.put(ctx, name+endMark, nil) // or others go on after claimLife
}

// forget deletes the claims of a login that is another one now.
func (o *shared) forget(ctx context.Context, l Login) {
	if names, err := o.names(ctx, claimsOf(l)); err == nil {
		o.remove(ctx, names)
	}
}
