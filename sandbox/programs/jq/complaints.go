package jq

import (
	"regexp"
	"sync"
)

// complaints are the errors of filters at work, and who knows what to do about each. The first row that has something
// to say says it. A row mends c.query or c.o, or gives a hint alone.
var complaints = []struct {
	says   string // regular expression of the message
	advise func(c *complaint) (hint string, mended bool)
}{
	{`^(cannot iterate over|keys|expected an? (object|array) but got|\S+ cannot be applied to).*: null`, nullInput},
	{`^expected an object but got: array`, namedOnArray},
	{`^expected an object but got: string`, namedOnString},
	{`^expected an (?:object|array) but got: (?:number|boolean)`, namedOnScalar},
	{`^expected an array but got: object`, numberedOnObject},
	{`^expected an array but got: string`, onText},
	{`^cannot iterate over: null`, iteratedNull},
	{`^cannot iterate over: string`, onText},
	{`^cannot iterate over: (?:number|boolean)`, namedOnScalar},
	{`^fromjson cannot be applied to: `, alreadyJSON},
	{`^fromjson cannot be applied to "`, notJSON},
	{`^tonumber cannot be applied to`, notNumber},
	{`^strptime\(.*cannot be applied to "`, otherDate},
	{`^strptime\(.*cannot be applied to: number`, secondsAlready},
	{`^(?:strftime|todate|gmtime|mktime)\S*( .*)? cannot be applied to: string`, dateText},
	{`^@(?:csv|tsv) cannot be applied to: object`, rowOfObject},
	{`^@(?:csv|tsv) cannot format an array including`, nestedRow},
	{`^(?:sort|unique|reverse|min|max|join|implode|flatten|transpose|add)\S*.* cannot be applied to: object`, listWanted},
	{`^(?:sort|unique|min|max|join|transpose|flatten|reverse|add).* cannot be applied to: (?:string|number)`, onText},
	{`^has\(".*cannot be applied to: array`, hasOnArray},
	{`^contains\(.*cannot be applied to: array`, anyElement},
	{`^(?:test|match|startswith|endswith|split|ltrimstr|rtrimstr|contains|ascii_downcase|ascii_upcase|trim|ltrim|rtrim|explode|inside|indices|index).* cannot be applied to: null`, textOfNull},
	{`^(?:test|match|startswith|endswith|split|ltrimstr|rtrimstr|contains|ascii_downcase|ascii_upcase|trim|ltrim|rtrim|explode).* cannot be applied to: (?:number|boolean)`, textOfScalar},
	{`^(?:test|match|startswith|endswith|split|ltrimstr|rtrimstr|ascii_downcase|ascii_upcase|trim|ltrim|rtrim|explode).* cannot be applied to: array`, anyElement},
	{`^(?:test|match|startswith|endswith|split|ascii_downcase|ascii_upcase|trim|contains).* cannot be applied to: object`, textOfObject},
	{`^(?:keys|length|has).* cannot be applied to: (?:null|boolean|string|number)`, nothingToCount},
	{`^(?:floor|ceil|round|sqrt|fabs|abs).* cannot be applied to: string`, numberOfText},
	{`^cannot (?:add|subtract|multiply|divide|modulo): (?:number .*string|string .*number)`, textAndNumber},
	{`^cannot (?:subtract|multiply|divide|modulo): .*null`, nullInSum},
	{`^cannot (?:subtract|multiply|divide): string .*string`, numbersAsText},
	{`^cannot (?:add|subtract|multiply|divide|modulo): `, oddSum},
	{`^cannot (?:divide|modulo) .* by: `, byZero},
	{`^expected a string for object key but got: `, keyOfObject},
	{`^expected an object but got: null`, nullInput},
	{`^invalid path`, noPath},
	{`^No more inputs`, noMoreInputs},
	{`^invalid regular expression`, badRegex},
	{`negative count|index should not be negative|index too large|depth should not be negative`, badCount},
	{`^invalid JSON: `, notJSONInput},
}

// saidPatterns compiles the expressions of complaints when the first filter fails.
var saidPatterns = sync.OnceValue(func() map[string]*regexp.Regexp {
	m := map[string]*regexp.Regexp{}
	for _, c := range complaints {
		m[c.says] = regexp.MustCompile(`(?s)` + c.says)
	}
	return m
})
