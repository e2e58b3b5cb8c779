package pace

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A Rate bounds the requests to a server: at most N of them go within any time of the length Per. The zero value is no bound.
type Rate struct {
	N   int
	Per time.Duration
}

// maxRate bounds N, because the time of each of the last N requests is kept.
const maxRate = 10_000

// rateUnits are the letters for Per.
var rateUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// ParseRate reads a rate such as "10/s", "600/m" or "1000/h".
func ParseRate(text string) (Rate, error) {
	number, unit, _ := strings.Cut(text, "/")
	per, ok := rateUnits[unit]
	if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
		return Rate{}, fmt.Errorf(`%q is not a rate; want a whole number of requests per second, minute or hour: "10/s", "600/m" or "1000/h"`, texts.Cut(text, 40))
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > maxRate {
		return Rate{}, fmt.Errorf(`want 1 to %d requests, got %s; a slower rate has a longer unit, such as "30/m"`, maxRate, texts.Cut(number, 40))
	}
	return Rate{n, per}, nil
}

// String is the rate as [ParseRate] reads it.
func (r Rate) String() string {
	for unit, per := range rateUnits {
		if r.Per == per {
			return strconv.Itoa(r.N) + "/" + unit
		}
	}
	return fmt.Sprintf("%d per %s", r.N, r.Per)
}
