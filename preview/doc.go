// Package preview shows the shape of large data in an exact budget of characters: which paths there are, in the
// spelling of jq, which types and values they have and how often, read in one pass with bounded memory. It knows
// nothing of pipelines, tools or jq programs; it reads bytes and writes text.
//
// # JSON
//
// Below a line that names the format, each line is one path or several of which the same is said. Paths are
// relative to the line above that is less indented, and spelled so that jq accepts the whole of them:
//
//	.[] [100] {4}                        an array of 100 objects that have 4 keys between them
//	 .id int 1..100                      integers and their range; num if some have a fraction
//	 .state "open"×60|"closed"×40        all values, with how often each is there
//	 .title str like "fix <n>"           strings that differ in numbers only; else e.g. and one of them
//	 .closed_at date-time|null×40        several types; formats are date-time, date, url, uuid, email, ip, hex,
//	                                     int-str, num-str, json-str
//	 .kind ="issue"                      one value, always
//	 .labels[]? [0..3] {id:int,name:str} ? for keys that some objects lack; [0..3] is the range of lengths
//	 .pull? {2} in 42/100 first@120      how many objects have the key, and which had it first if that was late
//	 .owner {5} as .[].user              the same shape as below that path
//	 .seen map{300 keys e.g. "u1"} use to_entries[]    keys that are data
//	 .v {1} (3 values)|int 1..9 (5 values)             a union; |arrays[] and |objects[] below it choose
//	 .body json-str e.g. "{\"ok\":true}"
//	  |fromjson {ok:bool}                what is in the documents in strings
//	  |split("\n")[] str like "Owner: dev<n>"|…    patterns of lines that many long texts have
//	 .children[]|recurse(.children[]?) {4} (61 values)    what nests in itself: all levels together
//	 … 3 more keys                       there was no room for them
//
// Where there is room, the last lines are a jq command to go on with (try:) and a record (sample:, or sample of PATH:)
// with long strings and arrays cut.
//
// Counts are exact for all data that was read. ×n follows a value and says how often it is there; (n values) follows
// a type. Values under keys that look like secrets are masked.
//
// An object with a few keys stands in its line, {id:int 1..9,owner:{name:str}}; so do short values there.
//
// # CSV
//
// Each line is one column, or several of which the same is said: its number and, where there is a header, its name as
// fromcsv gives it to jq. Fields that are numbers are announced as such, although jq gets strings.
//
// # Text
//
// Lines that differ in some words only are grouped to patterns, with their number; what varies stands in <>, as
// values, as a range, or as one of them and |…. Other text is shown from its beginning and its end.
package preview
