package quality

import (
	"fmt"
	"strings"
)

// Budgets are those that texts are compared at.
func Budgets() []int { return []int{500, 1000, 2000, 3000, 6000} }

// A Method makes a text of at most so many characters that tells about data, and says what it claims.
type Method struct {
	Name  string
	Tells func(s Set, chars int) (Facts, error)
}

// Methods are the preview, which is handed in, a sampler of values, and the beginning of the data.
func Methods(preview func(data string, chars int) (string, error)) []Method {
	return []Method{
		{"preview", func(s Set, chars int) (Facts, error) {
			text, err := preview(s.Data, chars)
			if err != nil {
				return nil, err
			}
			return Previewed(text)
		}},
		{"value sampler", func(s Set, chars int) (Facts, error) {
			text, err := Sample(s.array(), chars, Detailed)
			if err != nil {
				return nil, err
			}
			return s.documents(Shown(text)), nil
		}},
		{"head -c", func(s Set, chars int) (Facts, error) {
			return Shown(s.Data[:min(chars, len(s.Data))]), nil
		}},
	}
}

// array is the data as one document, for those who know no others.
func (s Set) array() string {
	if !s.Lines {
		return s.Data
	}
	return "[" + strings.ReplaceAll(strings.TrimSpace(s.Data), "\n", ",") + "]"
}

// documents turns what is known of the array back into what is known of each document.
func (s Set) documents(f Facts) Facts {
	if !s.Lines {
		return f
	}
	each := Facts{}
	for path, fact := range f {
		if path, ok := strings.CutPrefix(path, "[]"); ok {
			each[path] = fact
		}
	}
	return each
}

// A Result is the score of a method at a budget, for each set, and the mean of all.
type Result struct {
	Method string
	Chars  int
	Sets   map[string]Score
	Mean   Score
}

// Compare scores all methods at all budgets on the sets of JSON.
func Compare(sets []Set, methods []Method, budgets []int) ([]Result, error) {
	truths := make([]Facts, len(sets))
	for i, s := range sets {
		if s.Text {
			continue
		}
		truth, err := Truth(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		truths[i] = truth
	}
	var all []Result
	for _, chars := range budgets {
		for _, m := range methods {
			r := Result{Method: m.Name, Chars: chars, Sets: map[string]Score{}}
			for i, s := range sets {
				if s.Text {
					continue
				}
				claims, err := m.Tells(s, chars)
				if err != nil {
					return nil, fmt.Errorf("%s at %d: %s: %w", m.Name, chars, s.Name, err)
				}
				r.Sets[s.Name] = Measure(s, truths[i], claims)
			}
			r.Mean = mean(r.Sets)
			all = append(all, r)
		}
	}
	return all, nil
}

// mean is the mean of what there is to know.
func mean(scores map[string]Score) Score {
	var m Score
	for _, part := range []func(*Score) *float64{
		func(s *Score) *float64 { return &s.Paths },
		func(s *Score) *float64 { return &s.Types },
		func(s *Score) *float64 { return &s.Optional },
		func(s *Score) *float64 { return &s.Enums },
		func(s *Score) *float64 { return &s.Answerable },
	} {
		sum, n := 0.0, 0
		for _, s := range scores {
			if v := *part(&s); v >= 0 {
				sum, n = sum+v, n+1
			}
		}
		*part(&m) = sum / float64(max(n, 1))
	}
	for _, s := range scores {
		m.False = append(m.False, s.False...)
	}
	return m
}
