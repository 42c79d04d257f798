package wire

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
)

// Join gets a first certificate by a token, under a name where the token has none, from the first driver of it that
// answers. The driver must show that it is of the token's cluster before it is told the secret.
func Join(ctx context.Context, t trust.Token, name string) (trust.Bundle, error) {
	b, _, err := JoinDriver(ctx, t, name)
	return b, err
}

// JoinDriver does what Join does, and returns what a driver is made of, too, where the token is for one.
func JoinDriver(ctx context.Context, t trust.Token, name string) (b trust.Bundle, driver []byte, err error) {
	if err := t.Joins(); err != nil {
		return b, nil, err
	}
	key, request, err := trust.NewRequest()
	if err != nil {
		return b, nil, err
	}
	var all []error
	for _, addr := range t.Drivers {
		reply, err := joinAt(ctx, addr, t, &JoinRequest{Secret: t.Secret, Request: request, Name: name})
		if err == nil {
			return trust.Bundle{Chain: reply.Chain, Key: key, Roots: reply.Roots}, reply.Bundle, nil
		}
		all = append(all, CallError("join the cluster at", addr, err))
		if status.Code(err) != codes.Unavailable {
			break // another would say the same
		}
	}
	return b, nil, errors.Join(all...)
}

func joinAt(ctx context.Context, addr string, t trust.Token, req *JoinRequest) (*Certified, error) {
	if err := CheckAddress("join the cluster at", addr); err != nil {
		return nil, err
	}
	proof := credentials.NewTLS(trust.Pinned(t.Cluster, t.Pin, protocols))
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(proof), withCredentials(""),
		grpc.WithContextDialer(Connect), grpc.WithAuthority("volley"))
	if err != nil {
		return nil, fault.New(fault.Usage, "dial", addr, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, renewWait)
	defer cancel()
	return NewClusterClient(conn).Join(ctx, req)
}
