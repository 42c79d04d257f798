package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// web is a web server, of which pages can be read.
type web struct {
	client *http.Client
	root   string
}

// get asks for a page, or for a range of it.
func (w *web) get(ctx context.Context, key, ranges string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.root+key, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "volley")
	if ranges != "" {
		req.Header.Set("Range", "bytes="+ranges)
	}
	return w.client.Do(req)
}

// stat asks for a page's first byte: addresses that are signed for reading know no other question.
func (w *web) stat(ctx context.Context, key string) (i Info, err error) {
	err = retried(ctx, func() error {
		r, err := w.get(ctx, key, "0-0")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if i, err = infoOf(r); err == nil && i.Size < 0 {
			err = errUnsized
		}
		return err
	})
	return i, err
}

// errOtherRange is why an answer is not believed: as if it had been cut off, it is asked for again.
var errOtherRange = errors.New("the server has sent another part than it was asked for")

// isRange checks that an answer has the bytes that it was asked for, by its Content-Range, bytes FROM-TO/SIZE; without
// one it has all bytes.
func isRange(said string, offset, length int64) error {
	var from, to int64
	if said == "" && offset == 0 {
		return nil
	}
	if _, err := fmt.Sscanf(said, "bytes %d-%d/", &from, &to); err != nil || from != offset || to > offset+length-1 {
		return fmt.Errorf("%w: %q", errOtherRange, said)
	}
	return nil
}

// infoOf returns what an answer says of a page; its size is −1 where it does not say.
func infoOf(r *http.Response) (i Info, err error) {
	i.Tag = r.Header.Get("ETag")
	i.ModTime, _ = time.Parse(http.TimeFormat, r.Header.Get("Last-Modified")) // without one it is no sign
	switch r.StatusCode {
	case http.StatusOK:
		i.Size, i.Whole = r.ContentLength, true
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		_, total, _ := strings.Cut(r.Header.Get("Content-Range"), "/")
		if i.Size, err = strconv.ParseInt(total, 10, 64); err != nil {
			i.Size, err = -1, nil
		}
		if r.StatusCode != http.StatusPartialContent && i.Size != 0 {
			err = statusError(r.StatusCode)
		}
	default:
		err = statusError(r.StatusCode)
	}
	return i, err
}

func (w *web) read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error) {
	r, err := w.get(ctx, key, fmt.Sprintf("%d-%d", offset, offset+length-1))
	if err != nil {
		return nil, Info{}, err
	}
	now, err := infoOf(r)
	switch {
	case err != nil:
	case now.Whole && offset > 0:
		err = errUnparted
	case !now.Whole:
		err = isRange(r.Header.Get("Content-Range"), offset, length)
	}
	if err != nil {
		r.Body.Close()
		return nil, now, err
	}
	return r.Body, now, nil
}

func (*web) list(context.Context, string, func(string, Info) bool) error { return errUnlisted }

func (*web) write(context.Context, string, replaces) (io.WriteCloser, error) { return nil, errReadOnly }

func (*web) remove(context.Context, string) error { return errReadOnly }
