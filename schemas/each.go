package schemas

// eachOptions returns the options that stages which can be mapped share.
func eachOptions() any {
	return struct {
		ForEach     bool   `json:"for_each,omitempty" jsonschema:"default=false" jsonschema_description:"run once per item of the input"`
		Concurrency int    `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=64"`
		OnError     string `json:"on_error,omitempty" jsonschema:"enum=fail,enum=skip,enum=collect,default=fail"`
		Collect     string `json:"collect,omitempty" jsonschema:"enum=array,enum=lines"`
	}{}
}
