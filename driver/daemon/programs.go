package daemon

import (
	"context"
	"errors"
	"io"
	"runtime"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/wire"
)

// Program reports whether a program is there, and the driver's platform.
func (d *Daemon) Program(_ context.Context, req *wire.ProgramRequest) (*wire.ProgramReply, error) {
	_, known := d.programs.Path(req.Digest)
	return &wire.ProgramReply{Known: known, Arch: runtime.GOARCH}, nil
}

// Upload receives a program.
func (d *Daemon) Upload(stream wire.Cluster_UploadServer) error {
	part, err := stream.Recv()
	if err != nil {
		return err
	}
	digest := part.Digest
	w, err := d.programs.Create(digest)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	defer w.Close()
	for {
		if _, err := w.Write(part.Data); err != nil {
			return status.Error(codes.ResourceExhausted, err.Error())
		}
		if part, err = stream.Recv(); errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := d.allowed(wire.CallerOf(stream.Context()), wire.Cluster_Upload_FullMethodName); err != nil {
		return err // since it began
	}
	err = w.Commit()
	d.did(stream.Context(), "Upload", digest, err)
	if err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return stream.SendAndClose(&wire.UploadReply{})
}

// checkSigned refuses a program of a network that its submitter has not signed: executors run no other.
func (d *Daemon) checkSigned(ctx context.Context, u *wire.UserProgram) error {
	if d.admission.self.ID == nil {
		return nil
	}
	signer, err := wire.SignerOf(d.admission.self.ID, u)
	if err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	if who := d.admission.who(wire.CallerOf(ctx)); signer != who {
		return status.Errorf(codes.PermissionDenied, "%s submits a program that %s has signed", who, signer)
	}
	return nil
}

// FetchProgram sends an executor a program.
func (d *Daemon) FetchProgram(req *wire.ProgramRequest, stream wire.Cluster_FetchProgramServer) error {
	path, ok := d.programs.Path(req.Digest)
	if !ok {
		return status.Error(codes.NotFound, "the program is not here")
	}
	_, err := sendFrom(path, 0, func(p []byte) error { return stream.Send(&wire.ProgramPart{Data: p}) })
	return err
}
