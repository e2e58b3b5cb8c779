package schemas

// synonyms maps names that agents write to the fields that they may mean. The first field that the kind of stage has, and the
// stage does not set, wins.
var synonyms = map[string][]string{
	"tool_name": {"name"}, "toolname": {"name"}, "tool": {"name"}, "function": {"name"}, "method": {"name"},
	"mcp_server": {"server"}, "server_name": {"server"}, "upstream": {"server"},
	"arguments": {"args"}, "params": {"args"}, "parameters": {"args"}, "input": {"args"}, "argv": {"args"},
	"arg": {"args"}, "tool_args": {"args"}, "tool_input": {"args"}, "options": {"args"},
	"filter": {"args"}, "expression": {"args"}, "query": {"args"}, "script": {"args"},
	"cmd": {"command"}, "program": {"command", "args"}, "exec": {"command"}, "executable": {"command"}, "bin": {"command"},
	"parallelism": {"concurrency"}, "workers": {"concurrency"}, "max_concurrency": {"concurrency"},
	"parallel": {"concurrency"}, "jobs": {"concurrency"}, "batch_size": {"concurrency"},
	"foreach": {"for_each"}, "map": {"for_each"}, "each": {"for_each"}, "per_item": {"for_each"},
	"retry": {"retries"}, "max_retries": {"retries"}, "attempts": {"retries"},
	"onerror": {"on_error"}, "error": {"on_error"}, "errors": {"on_error"}, "continue_on_error": {"on_error"},
	"unique": {"distinct"}, "dedupe": {"distinct"}, "keep_item": {"with_item"}, "include_item": {"with_item"},
	"output": {"collect"}, "format": {"collect"},
	"timeout_seconds": {"timeout"}, "timeout_ms": {"timeout"}, "deadline": {"timeout"},
	"max_chars": {"chars"}, "limit": {"chars"}, "size": {"chars"}, "max_length": {"chars"}, "length": {"chars"},
	"pipeline": {"stages"}, "steps": {"stages"}, "do": {"stages"}, "body": {"stages"},
	"pipelines": {"branches"}, "run_id": {"run"}, "id": {"run"}, "file": {"path"}, "filename": {"path"},
}

// kindSynonyms are names that agents write for types of stages.
var kindSynonyms = map[string]string{
	"shell": "command", "bash": "command", "sh": "command", "exec": "command", "cmd": "command", "program": "command",
	"filter": "command", "transform": "command", "run": "command", "process": "command",
	"mcp": "tool", "call": "tool", "call_tool": "tool", "tool_call": "tool", "function": "tool", "fetch": "tool",
	"map": "for_each", "loop": "for_each", "foreach": "for_each", "each": "for_each",
	"branch": "parallel", "fork": "parallel", "join": "parallel", "split": "parallel",
	"show": "preview", "peek": "preview", "summary": "preview", "save": "tee", "write": "tee", "file": "tee",
	"resume": "from", "load": "from", "continue": "from",
}

// programs are commands that agents write instead of a type.
var programs = []string{
	"awk", "comm", "cut", "grep", "head", "join", "jq", "paste", "rg", "sed", "sort", "tail", "tr", "uniq", "wc",
}
