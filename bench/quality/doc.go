// Package quality measures how much a preview of data says to the author of the next filter. The truth is read from
// the whole data; what a text claims is parsed back from the text; a score compares the two. The texts compared are
// those of package preview, of a sampler of values, and the beginning of the data. It knows the format of previews, and
// not how they are made.
package quality
