package daemon

import (
	"context"
	"os/user"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/flight"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// Who may make a call.
var (
	executors  = []trust.Role{trust.Executor}
	processes  = []trust.Role{trust.Job}
	readers    = []trust.Role{trust.Read, trust.Submit, trust.Admin}
	submitters = []trust.Role{trust.Submit, trust.Admin}
	admins     = []trust.Role{trust.Admin}
	drivers    = []trust.Role{trust.Driver}
	anyRole    = []trust.Role{trust.Executor, trust.Job, trust.Read, trust.Submit, trust.Admin}
)

// may says who may make which call; a call that is not here is refused. Over a socket its user may make all but
// those of a job's processes, which have tokens.
var may = map[string][]trust.Role{
	wire.Cluster_Serve_FullMethodName:             executors,
	wire.Cluster_Logs_FullMethodName:              executors,
	wire.Cluster_FetchProgram_FullMethodName:      executors,
	wire.Cluster_Work_FullMethodName:              processes,
	wire.Cluster_End_FullMethodName:               processes,
	wire.Blocks_Fetch_FullMethodName:              processes,
	wire.Blocks_Give_FullMethodName:               processes,
	wire.Cluster_Inspected_FullMethodName:         processes,
	wire.Cluster_Inspect_FullMethodName:           admins,
	wire.Cluster_Support_FullMethodName:           admins,
	wire.Cluster_Jobs_FullMethodName:              readers,
	wire.Cluster_Watch_FullMethodName:             readers,
	wire.Cluster_Executors_FullMethodName:         readers,
	wire.Cluster_Look_FullMethodName:              readers,
	wire.Cluster_Page_FullMethodName:              readers,
	wire.Cluster_Download_FullMethodName:          submitters,
	wire.Cluster_Program_FullMethodName:           submitters,
	wire.Cluster_Upload_FullMethodName:            submitters,
	wire.Cluster_Submit_FullMethodName:            submitters,
	wire.Cluster_Cancel_FullMethodName:            submitters,
	wire.Cluster_Resume_FullMethodName:            submitters,
	wire.Cluster_Remove_FullMethodName:            submitters,
	wire.Cluster_Prune_FullMethodName:             admins,
	wire.Cluster_Drain_FullMethodName:             admins,
	wire.Cluster_CreateToken_FullMethodName:       admins,
	wire.Cluster_Tokens_FullMethodName:            admins,
	wire.Cluster_RevokeToken_FullMethodName:       admins,
	wire.Cluster_Certificates_FullMethodName:      admins,
	wire.Cluster_RevokeCertificate_FullMethodName: admins,
	wire.Cluster_ChangeAuthority_FullMethodName:   admins,
	wire.Cluster_Drivers_FullMethodName:           readers,
	wire.Cluster_RemoveDriver_FullMethodName:      admins,
	wire.Cluster_Snapshot_FullMethodName:          admins,
	wire.Cluster_Enrol_FullMethodName:             drivers,
	wire.Cluster_Reads_FullMethodName:             executors,
	wire.Cluster_Renew_FullMethodName:             anyRole,
	wire.Cluster_Join_FullMethodName:              nil, // who has a token, which the call itself carries
	flight.ListFlights:                            readers,
	flight.GetFlightInfo:                          readers,
	flight.GetSchema:                              readers,
	flight.DoGet:                                  readers,
	flight.DoPut:                                  submitters,
}

// ofProcess are the calls of a job's own process, which its runners may not make.
var ofProcess = []string{wire.Cluster_Work_FullMethodName, wire.Cluster_End_FullMethodName}

// admit refuses a call that its caller may not make, or of another version. It runs before the call's body is read.
func (d *Daemon) admit(ctx context.Context, method string) error {
	c := wire.CallerOf(ctx)
	err := d.allowed(c, method)
	if err == nil && !flight.Is(method) { // whose clients are not of this module
		_, err = agreed("the caller", wire.SideOf(ctx))
	}
	if err != nil {
		d.audit.refused(auditLine{Who: whoText(d.admission.who(c)), From: c.Addr, Call: shortMethod(method),
			Refused: status.Convert(err).Message()})
	}
	return err
}

// agreed returns the version of the protocol in which another process and this one speak.
func agreed(who string, side version.Side) (string, error) {
	v, err := side.Agree()
	if err != nil {
		return "", status.Errorf(codes.FailedPrecondition, "%s does not fit this driver: %v", who, err)
	}
	return v, nil
}

// allowed returns why a caller may not make a call.
func (d *Daemon) allowed(c wire.Caller, method string) error {
	roles, known := may[method]
	who := d.admission.who(c)
	switch {
	case !known && flight.Is(method):
		return status.Errorf(codes.Unimplemented, "%s is not served", shortMethod(method))
	case !known:
		return status.Errorf(codes.PermissionDenied, "no role may call %s", method)
	case method == wire.Cluster_Join_FullMethodName:
		return nil
	case who.Role == "":
		return status.Error(codes.Unauthenticated, "the caller has neither a certificate of this cluster nor a "+
			"job's token")
	case who.Role != trust.Job && c.Local && !slices.Equal(roles, processes) && !slices.Equal(roles, drivers):
		return nil
	case !slices.Contains(roles, who.Role) || who.Runner != "" && slices.Contains(ofProcess, method):
		return status.Errorf(codes.PermissionDenied, "the role %s may not call %s", who.Role, shortMethod(method))
	}
	return d.admission.inForce(c.Peer)
}

// mayChange returns an error unless a caller may change a job: whose it is, and admins.
func (d *Daemon) mayChange(ctx context.Context, w *jobHandle) error {
	who := d.admission.who(wire.CallerOf(ctx))
	if who.Role == trust.Submit && ownerOf(who) != w.info.Owner {
		return status.Errorf(codes.PermissionDenied, "%s is %s's: only they and admins may do that", w.info.Id,
			w.info.Owner)
	}
	return nil
}

// ownerOf returns how a submitter is noted at its jobs.
func ownerOf(who trust.Name) string {
	if who.Role == "" || who.Cluster == oneUser {
		return who.ID
	}
	return string(who.Role) + "/" + who.ID
}

// admitJob refuses a process of another job.
func (d *Daemon) admitJob(ctx context.Context, w *jobHandle) error {
	if who := d.admission.who(wire.CallerOf(ctx)); who.Role != trust.Job || who.ID != w.info.Id {
		return status.Error(codes.PermissionDenied, "the caller is no process of this job")
	}
	return nil
}

// admitExecutor refuses an executor that calls itself what its certificate does not.
func (d *Daemon) admitExecutor(ctx context.Context, name string) error {
	c := wire.CallerOf(ctx)
	if who := d.admission.who(c); !c.Local && who.ID != name {
		return status.Errorf(codes.PermissionDenied, "the certificate is executor %s's, not %s's", who.ID, name)
	}
	return nil
}

// oneUser is the name of a cluster of one user.
const oneUser = "local"

// whoText returns who has made a call as the audit log has it; empty where that is not known.
func whoText(n trust.Name) string {
	if n.Role == "" {
		return ""
	}
	return n.String()
}

// thisUser is the name of the user whose driver this is.
var thisUser = sync.OnceValue(func() string {
	u, err := user.Current()
	if err != nil || !trust.Valid(u.Username) {
		return "user"
	}
	return u.Username
})

// shortMethod returns a call's name without that of its service.
func shortMethod(method string) string {
	return method[strings.LastIndex(method, "/")+1:]
}
