package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcsh-dev/mcsh/preview"
)

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
		return pair{ours: throughput(data.size, ours), base: throughput(data.size, base)}, nil
	}
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
