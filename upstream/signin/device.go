package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

const (
	grantDevice    = "urn:ietf:params:oauth:grant-type:device_code"
	defaultPoll    = 5 * time.Second
	minPoll        = time.Second
	maxPoll        = time.Minute
	maxDeviceWait  = 30 * time.Minute // for a person
	maxUserCode    = 64
	maxDeviceTries = 3 // requests in a row without an answer
)

// CanDevice reports whether a person can sign in on another device (RFC 8628).
func (t *Target) CanDevice() bool { return t.issuer.DeviceEndpoint != "" }

// Device signs in on another device. It calls show with the address to open there and the code to enter, and waits.
func (t *Target) Device(ctx context.Context, show func(address, code string)) (logins.Login, error) {
	if !t.CanDevice() {
		return logins.Login{}, fmt.Errorf("%s signs nobody in on another device", texts.Cut(t.Issuer, maxWords))
	}
	client, err := t.client(ctx, "")
	if err != nil {
		return logins.Login{}, err
	}
	form := url.Values{"resource": {t.Resource}}
	if len(t.Scopes) > 0 {
		form.Set("scope", joined(t.Scopes))
	}
	answer, err := post(ctx, t.server.HTTP, t.issuer.DeviceEndpoint, client, form)
	if err != nil {
		return logins.Login{}, err
	}
	d, err := t.deviceCode(answer)
	if err != nil {
		return logins.Login{}, err
	}
	show(d.Address, d.UserCode)
	if answer, err = t.poll(ctx, client, d); err != nil {
		return logins.Login{}, err
	}
	return tokens(answer).into(t.login(client))
}

// A deviceCode is the answer of a device authorization endpoint.
type deviceCode struct {
	Code     string  `json:"device_code"`
	UserCode string  `json:"user_code"`
	Address  string  `json:"verification_uri"`
	Seconds  float64 `json:"expires_in"`
	Interval float64 `json:"interval"`
}

// deviceCode checks the answer: people open its address and read its code.
func (t *Target) deviceCode(answer []byte) (d deviceCode, err error) {
	err = json.Unmarshal(answer, &d)
	if err != nil || d.Code == "" || len(d.Code) > maxToken || d.UserCode == "" || d.Seconds <= 0 {
		return d, errors.New("the answer for another device is not as the specification says")
	}
	if len(d.UserCode) > maxUserCode || d.UserCode != plain(d.UserCode, maxUserCode, nil) {
		return d, errors.New("the code for another device cannot be shown")
	}
	return d, t.checkPage(d.Address)
}

// checkPage refuses a page for people on another host than the issuer's: an issuer that the server has named could get a code
// from another one, and have the person enter it there. The addresses of its endpoints are its own choice too.
func (t *Target) checkPage(address string) error {
	page, err := parse(t.server.HTTP, address)
	if err != nil {
		return fmt.Errorf("the address for another device: %w", err)
	}
	issuer, err := url.Parse(t.Issuer)
	if err != nil || hostOf(issuer) != hostOf(page) && !t.server.pinned() {
		return fmt.Errorf("the address for another device is on %s, not on the host of the authorization server %s: "+
			"if it belongs there, set oauth.issuer", texts.Cut(origin(page), maxWords), texts.Cut(t.Issuer, maxWords))
	}
	return nil
}

// wait is how long to wait between two requests.
func (d deviceCode) wait() time.Duration {
	if d.Interval <= 0 {
		return defaultPoll
	}
	return max(minPoll, time.Duration(min(d.Interval, maxPoll.Seconds())*float64(time.Second)))
}

// poll asks for the tokens until the person has agreed, or the code has ended.
func (t *Target) poll(ctx context.Context, client logins.Client, d deviceCode) ([]byte, error) {
	limit := time.Duration(min(d.Seconds, maxDeviceWait.Seconds()) * float64(time.Second))
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("nobody has entered the code in time: begin again"))
	defer cancel()
	wait, failures := d.wait(), 0
	for {
		if pausing.For(ctx, wait) != nil {
			return nil, context.Cause(ctx)
		}
		answer, err := post(ctx, t.server.HTTP, t.issuer.TokenEndpoint, client, url.Values{
			"grant_type": {grantDevice}, "device_code": {d.Code}, "resource": {t.Resource},
		})
		if err == nil {
			return answer, nil
		}
		refused, said := errors.AsType[*Refusal](err)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case said && refused.Code == "authorization_pending":
			failures = 0
		case said && refused.Code == "slow_down":
			wait, failures = min(wait+defaultPoll, maxPoll), 0
		case said && refused.Code == "expired_token":
			return nil, errors.New("nobody has entered the code in time: begin again")
		case said:
			return nil, err
		default: // no answer, or one of something before the server
			if failures++; failures == maxDeviceTries {
				return nil, err
			}
			wait = min(2*wait, maxPoll)
		}
	}
}
