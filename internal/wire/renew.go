package wire

import (
	"context"
	"time"

	"github.com/volley-engine/volley/internal/trust"
)

// Renew has a driver sign the party's certificate anew, and takes it over.
func Renew(ctx context.Context, client ClusterClient, id *trust.Identity) error {
	request, err := id.Request()
	if err != nil {
		return err
	}
	c, err := client.Renew(ctx, &RenewRequest{Request: request})
	if err != nil {
		return err
	}
	return id.Renewed(c.Chain, c.Roots)
}

const (
	renewWait  = 30 * time.Second // for an answer
	renewAgain = time.Minute      // between two looks at whether it is time
)

// KeepRenewed renews the party's certificate whenever that is due, until the context ends; failed is told why one
// attempt was none. Client returns the present connection to a driver, nil where there is none. A process without a
// certificate has nothing to renew.
func KeepRenewed(ctx context.Context, by Party, client func() ClusterClient, failed func(error)) {
	if by.ID == nil {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if err := by.ID.Reload(); err != nil { // another may have renewed it on disk
			failed(err)
		}
		if c := client(); c != nil && !time.Now().Before(by.ID.RenewAt()) {
			once, cancel := context.WithTimeout(ctx, renewWait)
			if err := Renew(once, c, by.ID); err != nil {
				failed(err)
			}
			cancel()
		}
		timer.Reset(renewAgain)
	}
}
