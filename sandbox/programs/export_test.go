package programs

// An Allowed option is a row of a grammar that is not a refusal, as the tests see it.
type Allowed struct {
	Option  string // as one would write it, the short form first
	Ignored bool   // it is left out of the canonical arguments
	Version bool   // it prints a version and does nothing else

	short, long, abbreviated string // with their dashes; empty if there is none
	takes                    takes
	number                   bool // it is "-NUM" or "+NUM"
	equals                   bool // of the grammar
}

// AllowedOptions enumerates what p's grammar accepts. "-NUM" and "+NUM" stand for a number that is an option itself.
func AllowedOptions(p Program) (all []Allowed) {
	for o := range p.each {
		if o.fate == refused {
			continue
		}
		c := p.canonical(o)
		a := Allowed{Option: o.String(), Ignored: c.fate == ignored, Version: c.long == "version", equals: p.equals, takes: c.takes}
		if o.short != 0 {
			a.short = "-" + string(rune(o.short))
		}
		if o.long != "" {
			a.long, a.abbreviated = "--"+o.long, p.shortest(o)
		}
		all = append(all, a)
	}
	if p.number != "" {
		all = append(all, Allowed{Option: "-NUM", number: true})
	}
	if p.plus {
		all = append(all, Allowed{Option: "+NUM", number: true})
	}
	return all
}

// shortest returns the shortest spelling of a long option that is read as this option, empty if that is its name.
func (p *Program) shortest(o *option) string {
	for n := 1; n < len(o.long); n++ {
		r := &reader{parsed: parsed{Program: p}}
		if found, err := r.find(0, o.long[:n]); err == nil && found == p.canonical(o) {
			return "--" + o.long[:n]
		}
	}
	return ""
}

// Long returns the ways to write the long form with values: in full and as short as it may be, with a value attached and
// as a word of its own.
func (a Allowed) Long(values []string) (ways [][]string) {
	for _, long := range []string{a.long, a.abbreviated} {
		switch {
		case long == "":
		case len(values) == 0 || a.takes == two:
			ways = append(ways, append([]string{long}, values...))
		case a.takes == one:
			ways = append(ways, []string{long, values[0]}, []string{long + "=" + values[0]})
		default:
			ways = append(ways, []string{long + "=" + values[0]})
		}
	}
	return ways
}

// Short returns the ways to write the short form with values.
func (a Allowed) Short(values []string) (ways [][]string) {
	switch {
	case a.number:
		return [][]string{{a.Option[:1] + values[0]}}
	case a.short == "":
		return nil
	case len(values) == 0:
		return [][]string{{a.short}}
	case a.takes == one:
		ways = append(ways, []string{a.short, values[0]})
	}
	if values[0] == "" || a.equals && values[0][0] == '=' {
		return ways
	}
	return append(ways, []string{a.short + values[0]})
}
