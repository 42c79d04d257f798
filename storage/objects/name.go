package objects

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// place is what a name consists of.
type place struct {
	scheme string
	bucket string // host of a web server
	key    string // without a slash before it; a web server's has its query
}

// schemes are those of names of objects.
var schemes = []string{"s3", "gs", "https", "http"}

// Is reports whether a name is that of an object, or of what may hold objects, and not of a file.
func Is(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && slices.Contains(schemes, scheme)
}

// IsWeb reports whether a name is that of a page of a web server.
func IsWeb(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// Join returns the name of an object below another name.
func Join(name string, below ...string) string {
	root := strings.TrimRight(name, "/")
	if strings.HasSuffix(root, ":") {
		root += "/" // there is no bucket in it
	}
	rest := path.Join(below...)
	if rest == "" || rest == "." {
		return root
	}
	return root + "/" + rest
}

// Base returns what follows the last slash of a name.
func Base(name string) string { return path.Base(name) }

// parse takes a name apart.
func parse(name string) (p place, err error) {
	scheme, rest, _ := strings.Cut(name, "://")
	p.scheme = scheme
	if p.bucket, p.key, _ = strings.Cut(rest, "/"); p.bucket == "" {
		return p, fault.Newf(fault.BadInput, "open", name, "it names no bucket").
			WithHint("the form is " + strings.TrimRight(scheme, ":/") + "://BUCKET/KEY")
	}
	if !IsWeb(name) {
		return p, nil
	}
	u, err := url.Parse(name)
	switch {
	case err != nil:
		return p, fault.Newf(fault.BadInput, "open", shown(name), "it is no address of a web server")
	case u.Fragment != "":
		return p, fault.Newf(fault.BadInput, "open", shown(name), "what follows # is no part of an address").
			WithHint("a # of a page's name is written %23")
	case u.User != nil:
		return p, fault.Newf(fault.BadInput, "open", u.Redacted(), "an address with a password would be logged").
			WithHint("use a store, whose credentials are in the environment, or an address that is signed")
	}
	return p, nil
}
