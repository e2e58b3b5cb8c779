package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/preview"
)

const peakMemory = "peak RSS"

const tokens = "encoding/json, reading the tokens and doing nothing with them"

// shape compares a preview of a long stream with reading its tokens.
func shape(array bool) opener {
	return func(_ context.Context, b *bench) (pair, error) {
		data := newFeed(b.sizes.shape, array)
		ours := func(ctx context.Context) error {
			res, err := preview.Preview(ctx, data.reader(), preview.Options{})
			if err == nil && res.Bytes != data.size {
				err = fmt.Errorf("the preview has seen %d bytes, want %d", res.Bytes, data.size)
			}
			return err
		}
		base := func(context.Context) error { return readTokens(data.reader()) }
		return pair{ours: withMemory(throughput(data.size, ours), b.self, b.sizes.shape, array), base: throughput(data.size, base)}, nil
	}
}

// previewArg makes this program preview a stream and say how much memory it has taken.
const previewArg = "preview"

// withMemory adds the memory of a process that does nothing else.
func withMemory(work side, self string, bytes int64, array bool) side {
	return func(ctx context.Context) ([]quantity, error) {
		list, err := work(ctx)
		if err != nil {
			return nil, err
		}
		out, err := exec.CommandContext(ctx, self, previewArg, fmt.Sprint(bytes), fmt.Sprint(array)).Output()
		if err != nil {
			return nil, fmt.Errorf("a preview in a process of its own: %w", err)
		}
		peak, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		return append(list, quantity{peakMemory, peak, size}), err
	}
}

// previewAlone is what such a process does.
func previewAlone(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("want a number of bytes and true or false")
	}
	bytes, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	data := newFeed(bytes, args[1] == "true")
	if _, err := preview.Preview(ctx, data.reader(), preview.Options{}); err != nil {
		return err
	}
	peak, known := peakRSS(os.Getpid())
	if !known {
		return errors.New("the memory of a process is not known here")
	}
	_, err = fmt.Fprintln(stdout, peak)
	return err
}

func readTokens(r io.Reader) error {
	d := json.NewDecoder(r)
	d.UseNumber()
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// throughput measures how fast bytes are read.
func throughput(size int64, work func(context.Context) error) side {
	return func(ctx context.Context) ([]quantity, error) {
		m := startMeter()
		if err := work(ctx); err != nil {
			return nil, err
		}
		u := m.stop()
		mb := float64(size) / 1e6
		return []quantity{
			{"MB/s of CPU", mb / u.cpu.Seconds(), rate},
			{"allocations/MB", float64(u.mallocs) / mb, count},
		}, nil
	}
}
