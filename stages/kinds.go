package stages

// A Kind is one type of stage. The parser, the JSON Schema, the hints, the plan and the metrics follow from the table of
// kinds; CONTRIBUTING.md names the texts to write.
type Kind struct {
	Name    string       // the value of "type"
	Summary string       // one line for agents and for the reference page
	New     func() Stage // a pointer to a zero stage, to decode into
	Each    bool         // whether "for_each": true and the fields of [EachOptions] are allowed
	Maps    bool         // whether it runs its stages once per item
	Window  bool         // whether its output is its input where it is not the last stage, and it changes nothing
	Begins  bool         // it reads the output of an earlier run
	Calls   bool         // whether it calls what its label names, so that the name alone says which stage is meant
	Values  ValuesIn     // where values of parameters can stand
	Example string       // a stage as JSON; a test compiles it

	Hints map[string]string // what to do about a field that has the wrong form, instead of the example
}

// ValuesIn says where in "args" of a stage of a saved pipeline values of parameters can stand.
type ValuesIn int

// The places of values of parameters.
const (
	NoValues      ValuesIn = iota
	ValuesInArgs           // anywhere in an object of arguments
	ValuesAsWords          // as whole elements of a list of words
)

// Kinds returns the table of stage types. To add one, write its file and its entry here.
func Kinds() []Kind {
	return []Kind{
		{
			Name:    "tool",
			Summary: "calls one tool of one upstream MCP server",
			New:     func() Stage { return new(ToolStage) },
			Each:    true,
			Calls:   true,
			Values:  ValuesInArgs,
			Example: `{"type": "tool", "server": "demo", "name": "get_customer", "for_each": true, "concurrency": 16}`,
			Hints:   paginateHints,
		},
		{
			Name:    "command",
			Summary: "runs one allow-listed command over the input, without a shell",
			New:     func() Stage { return new(CommandStage) },
			Each:    true,
			Calls:   true,
			Values:  ValuesAsWords,
			Example: `{"type": "command", "command": "jq", "args": ["-c", ".[] | {id: .customer_id}"]}`,
		},
		{
			Name:    "preview",
			Summary: "shows the shape of the data within a budget",
			New:     func() Stage { return new(PreviewStage) },
			Window:  true,
			Example: `{"type": "preview", "chars": 1200}`,
		},
		{
			Name:    "for_each",
			Summary: "runs a pipeline of its own for every item of the input",
			New:     func() Stage { return new(ForEachStage) },
			Maps:    true,
			Example: `{"type": "for_each", "stages": [{"type": "tool", "server": "demo", "name": "get_customer"}, {"type": "command", "command": "jq", "args": ["-c", ".region"]}], "on_error": "collect", "retries": 2, "with_item": true}`,
		},
		{
			Name:    "from",
			Summary: "begins with what a stage of an earlier run produced, first stage only; with resume continues that run, only stage",
			New:     func() Stage { return new(FromStage) },
			Begins:  true,
			Example: `{"type": "from", "run": "r_5fq2kxwzj7m3c4yta6hdbv7nre", "stage": 2}`,
		},
		{
			Name:    "parallel",
			Summary: "runs named branches at the same time on the same input; output is one object, a key per branch",
			New:     func() Stage { return new(ParallelStage) },
			Example: `{"type": "parallel", "branches": {"count": [{"type": "command", "command": "jq", "args": ["length"]}], "first": [{"type": "command", "command": "jq", "args": [".[0]"]}]}}`,
		},
		{
			Name:    "tee",
			Summary: "saves the data as a file of the workspace and passes it on",
			New:     func() Stage { return new(TeeStage) },
			Example: `{"type": "tee", "path": "reports/open_orders.json"}`,
		},
	}
}

// KindNamed returns the entry of the table, or nil.
func KindNamed(name string) *Kind {
	for _, k := range Kinds() {
		if k.Name == name {
			return &k
		}
	}
	return nil
}
