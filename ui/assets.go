package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets/*.css assets/*.js assets/*.svg assets/licences.txt
var assetFiles embed.FS

// An asset is a file that pages load. Its name holds a hash, so that browsers keep it forever.
type asset struct {
	name   string
	plain  []byte
	packed func() []byte // with gzip
}

// address returns the address of an asset, relative to the base of the console.
func (a *asset) address() string { return "assets/" + a.name }

// openAssets returns the assets by their names without hashes.
func openAssets() (map[string]*asset, error) {
	all := map[string]*asset{}
	entries, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := fs.ReadFile(assetFiles, "assets/"+e.Name())
		if err != nil {
			return nil, err
		}
		sum, end := sha256.Sum256(data), path.Ext(e.Name())
		all[e.Name()] = &asset{
			name:  strings.TrimSuffix(e.Name(), end) + "-" + hex.EncodeToString(sum[:6]) + end,
			plain: data, packed: sync.OnceValue(func() []byte { return pack(data) }),
		}
	}
	return all, nil
}

// pack compresses an asset.
func pack(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(data)                                  // to memory
	_ = z.Close()
	return b.Bytes()
}

// serveAsset answers with an asset.
func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	for _, a := range c.assets {
		if a.name != r.PathValue("name") {
			continue
		}
		h, data := w.Header(), a.plain
		h.Set("Content-Type", mime.TypeByExtension(path.Ext(a.name)))
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			data = a.packed()
		}
		h.Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data) // the browser may have gone
		return
	}
	http.NotFound(w, r)
}
