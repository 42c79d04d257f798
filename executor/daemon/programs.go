package daemon

import (
	"context"
	"errors"
	"io"

	"github.com/volley-engine/volley/internal/wire"
)

// program returns the path of a program, fetched from the driver where it is
// not here yet. Over the network it must be signed by a user who may submit programs.
func (d *Daemon) program(ctx context.Context, u *wire.UserProgram) (string, error) {
	digest := u.Digest
	if d.cfg.Party.ID != nil {
		if _, err := wire.SignerOf(d.cfg.Party.ID, u); err != nil {
			return "", err
		}
	}
	if path, ok := d.programs.Path(digest); ok {
		return path, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.mu.Lock()
	client := d.client
	d.mu.Unlock()
	stream, err := client.FetchProgram(ctx, &wire.ProgramRequest{Digest: digest})
	if err != nil {
		return "", err
	}
	w, err := d.programs.Create(digest)
	if err != nil {
		return "", err
	}
	defer w.Close()
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if _, err := w.Write(part.Data); err != nil {
			return "", err
		}
	}
	if err := w.Commit(); err != nil {
		return "", err
	}
	path, _ := d.programs.Path(digest)
	return path, nil
}
