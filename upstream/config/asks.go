package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
)

// readAsks reads whether the server asks its callers something.
func (e *entry) readAsks(value json.RawMessage) error {
	asks, err := decode[bool](value, "true or false")
	if err == nil {
		e.Asks = upstream.NeverAsks
	}
	if asks {
		e.Asks = upstream.Asks
	}
	return err
}

// readRoots reads the directories that the server may use: absolute paths, paths relative to the project of the file, or URIs.
func (e *entry) readRoots(value json.RawMessage) error {
	list, err := decode[[]string](value, "an array of paths or file:// addresses")
	if err != nil {
		return err
	}
	for _, root := range list {
		uri, err := e.rootURI(root)
		if err != nil {
			return err
		}
		e.Roots = append(e.Roots, uri)
	}
	return nil
}

// rootURI is the URI of a root.
func (e *entry) rootURI(root string) (string, error) {
	if scheme, _, ok := strings.Cut(root, "://"); ok {
		u, err := url.Parse(root)
		if err != nil || scheme != "file" || !filepath.IsAbs(u.Path) {
			return "", fmt.Errorf("%s is no file:// address with an absolute path", texts.Quote(texts.Cut(root, maxShown)))
		}
		return root, nil
	}
	if root == "" || strings.ContainsRune(root, 0) {
		return "", fmt.Errorf("%s is no path", texts.Quote(root))
	}
	if !filepath.IsAbs(root) {
		workspace, err := e.reader.file.workspace()
		if err != nil {
			return "", err
		}
		root = filepath.Join(workspace, root)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(root)}).String(), nil
}
