package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/copies"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// sharing is what a driver serves to the others: its copies, and the authorities that it has.
type sharing struct {
	*copies.Store
	r *Replica
}

// Agree takes over the authorities of another driver where they are newer, and returns those that are here then.
func (s sharing) Agree(_ context.Context, req *wire.Authorities) (*wire.Authorities, error) {
	if err := s.r.adopt(req.All); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	all, err := s.r.authorities()
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &wire.Authorities{All: all}, nil
}

// authorities returns those that this driver has.
func (r *Replica) authorities() ([]byte, error) {
	all, err := r.admission.authorities.Export()
	if err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// adopt takes over authorities that are newer.
func (r *Replica) adopt(raw []byte) error {
	var all []trust.AuthorityPEM
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	changed, err := r.admission.authorities.Adopt(all)
	if err != nil || !changed {
		return err
	}
	r.log.Info("another authority signs, as another driver says", "authorities", r.admission.authorities.Pins())
	return r.admission.certifySelf(time.Now())
}

// agreeEvery is the time between two looks at whether all drivers have the same authorities.
const agreeEvery = 10 * time.Second

// keepAgreed sees to it that all drivers have the same authorities, while this one leads.
func (d *Daemon) keepAgreed() {
	if d.self.Address == "" {
		return
	}
	ticker := time.NewTicker(agreeEvery)
	defer ticker.Stop()
	for {
		if err := d.agree(d.ctx); err != nil {
			d.log.Debug("not all drivers have the same authorities", "why", err)
		}
		select {
		case <-ticker.C:
		case <-d.ctx.Done():
			return
		}
	}
}

// agree has all drivers have the newest authorities that one of them has; the error names those that do not answer.
func (d *Daemon) agree(ctx context.Context) error {
	var silent []string
	for _, p := range d.others() {
		if err := d.agreeWith(ctx, p); err != nil {
			silent = append(silent, fmt.Sprintf("driver %s: %s", p.ID, status.Convert(err).Message()))
		}
	}
	if silent != nil {
		return status.Errorf(codes.Unavailable, "not all drivers have the same authorities: %s",
			strings.Join(silent, "; "))
	}
	return nil
}

func (d *Daemon) agreeWith(ctx context.Context, p Peer) error {
	ctx, cancel := context.WithTimeout(ctx, standingWait)
	defer cancel()
	client, err := d.copier.client(p.Address)
	if err != nil {
		return err
	}
	ours, err := d.authorities()
	if err != nil {
		return err
	}
	theirs, err := client.Agree(ctx, &wire.Authorities{All: ours})
	if err != nil {
		return err
	}
	return d.adopt(theirs.All)
}
