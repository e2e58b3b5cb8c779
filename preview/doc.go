// Package preview shows the shape of large data in an exact budget of characters: the paths as jq writes them, their
// types, values and counts. It reads the data once, with bounded memory. It knows nothing of pipelines, tools or jq
// programs; it reads bytes and writes text.
//
// # JSON
//
// Below a line that names the format, each line describes one path, or several paths in the same words. A path is
// relative to the nearest less indented line above it, and jq accepts the joined path:
//
//	.[] [100] {4}                        an array of 100 objects with 4 different keys in all
//	 .id int 1..100                      integers and their range; num if some have a fraction
//	 .state "open"×60|"closed"×40        all values and their counts
//	 .title str like "fix <n>"           strings that differ in numbers only; otherwise e.g. and one of them
//	 .closed_at date-time|null×40        several types; formats are date-time, date, url, uuid, email, ip, hex,
//	                                     int-str, num-str, json-str
//	 .kind ="issue"                      always the same value
//	 .labels[]? [0..3] {id:int,name:str} ? for keys that some objects lack; [0..3] is the range of lengths
//	 .pull? {2} in 42/100 first@120      42 of 100 objects have the key, the first of them is object 120
//	 .owner {5} as .[].user              the same shape as below that path
//	 .seen map{300 keys e.g. "u1"} use to_entries[]    keys that are data
//	 .v {1} (3 values)|int 1..9 (5 values)             a union; |arrays[] and |objects[] below it choose
//	 .body json-str e.g. "{\"ok\":true}"
//	  |fromjson {ok:bool}                the JSON documents in the strings
//	  |split("\n")[] str like "Owner: dev<n>"|…    patterns of lines that many long texts have
//	 .children[]|recurse(.children[]?) {4} (61 values)    objects that nest in themselves: all levels together
//	 … 3 more keys                       keys that did not fit
//
// If there is room, the last lines propose a jq command (try:) and show a record (sample:, or sample of PATH:) with long
// strings and arrays cut.
//
// Counts are exact for all data read. ×n after a value is its count; (n values) follows a type. Values under keys that
// look like secrets are masked.
//
// A small object is written on its line, with its short values: {id:int 1..9,owner:{name:str}}.
//
// # CSV
//
// Each line describes one column, or several in the same words: its number and, if there is a header, its name as jq's
// fromcsv gives it. A column of numbers is called so, although jq gets strings.
//
// # Text
//
// Lines that differ in some words only form a pattern with a count. The words that vary stand in <>, as values, as a
// range, or as one of them and |…. Of other text the beginning and the end are shown.
package preview
