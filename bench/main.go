// Command bench compares mcsh with what people would do without it: a direct call of the same tool, the same programs
// in a shell's pipe, a plain loop. All sides of a comparison run in turn within one run of the program, so that what
// counts is their ratio and never the speed of a machine. It knows how to measure and what to compare with; what a
// good ratio is stands in the table of rows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

// resultsFile is where the results of all rows go.
const resultsFile = "bench/RESULTS.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == upstreamArg {
		serveUpstream(ctx)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == previewArg {
		if err := previewAlone(ctx, os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx, os.Args[1:], os.Stdout, fullSizes()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	runs   int
	only   string
	out    string
	big    int64
	shared bool
}

func parse(args []string, big int64) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.runs, "runs", 5, "how often each row is measured; the median counts")
	f.StringVar(&o.only, "only", "", "measure only the rows whose name matches this regular expression")
	f.StringVar(&o.out, "o", "", "file for the results (default "+resultsFile+", none with -only: rows that are measured alone take the place of those in it)")
	f.Int64Var(&o.big, "big", big, "bytes of the stream that is fed to mcsh run")
	f.BoolVar(&o.shared, "shared", false, "note that others use the machine meanwhile")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.runs < 1 || o.big < 1 || f.NArg() > 0 {
		return o, errors.New("want -runs and -big above 0, and no other arguments")
	}
	if o.out == "" && o.only == "" {
		o.out = resultsFile
	}
	return o, nil
}

// run measures the rows, prints the table as it grows and writes it to a file. A row that cannot be measured, or that
// finds mcsh doing something wrong, is an error after all others are measured.
func run(ctx context.Context, args []string, stdout io.Writer, s sizes) error {
	o, err := parse(args, s.big)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("reading -only: %w", err)
	}
	s.big = o.big
	b, err := newBench(ctx, s)
	if err != nil {
		return err
	}
	var outcomes []outcome
	var errs []error
	for _, r := range rows() {
		if !only.MatchString(r.name) {
			continue
		}
		res := b.measureRow(ctx, r, o.runs)
		if res.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.name, res.err))
		}
		fmt.Fprint(stdout, summary(res))
		outcomes = append(outcomes, res)
	}
	errs = append(errs, b.close())
	text := report(outcomes, o)
	if o.only == "" {
		section, err := qualityText()
		errs = append(errs, err)
		text += section
	}
	fmt.Fprint(stdout, "\n", text)
	if old, err := os.ReadFile(o.out); err == nil && o.only != "" {
		text = merge(string(old), outcomes, o)
	}
	if o.out != "" {
		errs = append(errs, os.WriteFile(o.out, []byte(text), 0o644))
	}
	return errors.Join(errs...)
}
