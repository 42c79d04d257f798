package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	driverd "github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

func initCommand() *cobra.Command {
	var dataDir, address, bundle, join, config string
	var peers []string
	var again, once bool
	name := "volley"
	c := &cobra.Command{
		Use:   "init",
		Short: "Make a cluster over the network: its authority, and its driver's certificate",
		Long: `Init makes what a driver needs to serve a network: the authority that signs the
certificates of its cluster, the driver's own certificate, and one by which this
user is an admin of it. Who can read the driver's data directory can make
any process or user a member: keep it as you keep a key.
With --peers the cluster has more drivers, three or five in all, and goes on when one
of three or two of five are lost. Init writes a bundle, of which volley init --bundle
makes each of the others, on its machine, or this driver, elsewhere. The bundle has
the authority's key: remove it when all are made.
With --admin it makes this user an admin of the cluster that is in the data
directory: the way back for who has lost their certificate, to be run on a driver's
machine.`,
		Example: "  volley init --address 10.0.0.5:7077 --data-dir /var/lib/volley/driver\n" +
			"  volley driver --data-dir /var/lib/volley/driver &\n  volley token create --role executor\n" +
			"  volley init --address 10.0.0.5:7077 --peers 10.0.0.6:7077,10.0.0.7:7077 --data-dir " +
			"/var/lib/volley/driver",
		Args: exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			if dataDir == "" {
				dataDir = filepath.Join(volley.DefaultDataDir(), "driver")
			}
			if again {
				return newAdmin(dataDir)
			}
			if once && driverd.Made(dataDir) {
				return printJSON(map[string]string{"trust": driverd.TrustDir(dataDir), "made": "before"})
			}
			if address == "" {
				return usage(c, "address", "say HOST:PORT by which executors and users reach the driver")
			}
			switch {
			case bundle != "":
				return initFrom(c, dataDir, bundle, address)
			case join != "":
				return initJoined(c, dataDir, join, address)
			}
			return initCluster(c, dataDir, name, address, peers)
		},
	}
	fs := c.Flags()
	fs.StringVar(&address, "address", "", "HOST:PORT by which executors and users reach the driver")
	fs.StringSliceVar(&peers, "peers", nil, "HOST:PORT of each of the other drivers, of two or four")
	fs.StringVar(&join, "join", "", "make another driver of a cluster that runs, by a token of the role driver")
	fs.StringVar(&bundle, "bundle", "", "make another driver of a cluster, of the file that init has written, or of "+
		"what env:NAME has in the environment")
	fs.BoolVar(&once, "once", false, "do nothing where the data directory is a driver's already")
	fs.StringVar(&name, "name", name, "name of the cluster")
	fs.BoolVar(&again, "admin", false, "make this user an admin of the cluster that is there")
	fs.StringVar(&dataDir, "data-dir", "", "the driver's data directory (default: $XDG_CACHE_HOME/volley/driver)")
	fs.StringVar(&config, "config", "", "YAML file with values for flags")
	return c
}

// initCluster makes a cluster, and this user an admin of it.
func initCluster(c *cobra.Command, dataDir, name, address string, peers []string) error {
	if _, socket := wire.SocketPath(address); socket {
		return fault.Newf(fault.Usage, "use", "--address", "a socket needs no certificates").
			WithHint("volley driver serves its own user without them")
	}
	all := append([]string{address}, peers...)
	for n, a := range all {
		if err := reachable(a); err != nil {
			return err
		}
		if slices.Contains(all[:n], a) {
			return usage(c, "peers", "%s is there twice", a)
		}
	}
	if len(all) != 1 && len(all) != 3 && len(all) != 5 {
		return usage(c, "peers", "%d drivers are no cluster: one, three or five are", len(all))
	}
	home := filepath.Join(clustersDir(), name)
	if trust.HasIdentity(home) {
		return fault.Newf(fault.Usage, "make the cluster", name, "this user has joined one of that name: %s", home).
			WithHint("choose another --name, or remove that directory")
	}
	if err := os.MkdirAll(clustersDir(), 0o700); err != nil { // before there is an authority that has no admin
		return fault.New(fault.NoResources, "keep the certificate in", home, err)
	}
	admin, pin, err := driverd.Init(dataDir, name, address, peers...)
	if err != nil {
		return err
	}
	if err := keepIdentity(home, admin, all); err != nil {
		return err
	}
	made := map[string]string{"cluster": name, "address": address, "pin": pin,
		"trust": driverd.TrustDir(dataDir), "admin": home, "bundle": filepath.Join(dataDir, "drivers.bundle")}
	if err := driverd.WriteBundle(dataDir, made["bundle"]); err != nil {
		return err
	}
	return printJSON(made)
}

// initFrom makes another driver of a cluster.
func initFrom(c *cobra.Command, dataDir, bundle, address string) error {
	for _, flag := range []string{"peers", "name"} {
		if c.Flags().Changed(flag) {
			return usage(c, flag, "the bundle says it")
		}
	}
	cluster, err := driverd.InitFrom(dataDir, bundle, address)
	if err != nil {
		return err
	}
	return printJSON(map[string]string{"cluster": cluster, "address": address, "trust": driverd.TrustDir(dataDir)})
}

// initJoined makes a driver that a running cluster takes in once it is started.
func initJoined(c *cobra.Command, dataDir, join, address string) error {
	for _, flag := range []string{"peers", "name"} {
		if c.Flags().Changed(flag) {
			return usage(c, flag, "the cluster says it")
		}
	}
	if err := reachable(address); err != nil {
		return err
	}
	t, err := trust.ParseToken(join)
	if err != nil {
		return err
	}
	if t.Role != trust.Driver {
		return fault.Newf(fault.Usage, "use", "--join", "the token makes its bearer %s, no driver", t.Role)
	}
	if _, err := os.Stat(driverd.TrustDir(dataDir)); err == nil {
		return fault.Newf(fault.Usage, "make a driver in", dataDir, "it is one already")
	}
	own, bundle, err := wire.JoinDriver(c.Context(), t, "")
	if err != nil {
		return err
	}
	id, err := driverd.InitJoined(dataDir, own, bundle, address)
	if err != nil {
		return err
	}
	return printJSON(map[string]string{"cluster": t.Cluster, "id": id, "address": address,
		"trust": driverd.TrustDir(dataDir)})
}

// newAdmin makes this user an admin of a cluster whose driver's data directory it can read.
func newAdmin(dataDir string) error {
	admin, name, address, err := driverd.NewAdmin(dataDir)
	if err != nil {
		return err
	}
	home := filepath.Join(clustersDir(), name)
	if trust.HasIdentity(home) {
		if id, err := trust.OpenIdentity(home); err == nil && !bytes.Contains(id.Roots(),
			bytes.TrimSpace(admin.Roots)) &&
			!bytes.Contains(admin.Roots, bytes.TrimSpace(id.Roots())) {
			return fault.Newf(fault.Usage, "make this user an admin of", name,
				"%s has a certificate of another cluster of "+
					"that name", home).WithHint("move that directory away, or give another VOLLEY_HOME")
		}
	}
	if err := keepIdentity(home, admin, []string{address}); err != nil {
		return err
	}
	return printJSON(map[string]string{"cluster": name, "address": address, "admin": home})
}

// reachable refuses what is no address by which others reach a driver.
func reachable(address string) error {
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	ip := net.ParseIP(host)
	switch {
	case err != nil || bad != nil || n == 0:
		return fault.Newf(fault.Usage, "use", "--address", "%q is not HOST:PORT", address)
	case host == "" || ip != nil && ip.IsUnspecified():
		return fault.Newf(fault.Usage, "use", "--address", "%q says no machine: executors are to reach the driver "+
			"by it",
			address)
	case ip == nil && !hostName.MatchString(host):
		return fault.Newf(fault.Usage, "use", "--address", "%q is no name of a machine", host)
	}
	return nil
}

// hostName is what a machine may be called.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?$`)

func loginCommand() *cobra.Command {
	var config string
	c := &cobra.Command{
		Use:   "login TOKEN",
		Short: "Get a certificate of a cluster, by a token of its admin's",
		Long: `Login gets this user a certificate, kept under VOLLEY_HOME (default ~/.volley):
commands use the cluster from then on, and renew the certificate themselves.
The driver must prove that it is of the token's cluster before it is told the
token's secret.`,
		Example: "  volley login volley-token-eyJjb…\n  volley jobs",
		Args:    exactArgs(1, "a token"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			return login(c.Context(), args[0])
		},
	}
	c.Flags().StringVar(&config, "config", "", "YAML file with values for flags")
	return c
}

func login(ctx context.Context, text string) error {
	t, err := trust.ParseToken(text)
	if err != nil {
		return err
	}
	if err := t.Joins(); err != nil {
		return err
	}
	if t.Role == trust.Executor {
		return fault.Newf(fault.Usage, "use", "the token", "it is an executor's").WithHint("volley executor --join " +
			"TOKEN")
	}
	dir := filepath.Join(clustersDir(), t.Cluster)
	if trust.HasIdentity(dir) {
		if id, err := trust.OpenIdentity(dir); err == nil && time.Now().Before(id.Expires()) {
			return fault.Newf(fault.Usage, "join the cluster", t.Cluster, "this user is %s of one of that name",
				id.Name().Role).WithHint("remove " + dir + " first, if it is to be replaced")
		}
	}
	b, err := wire.Join(ctx, t, "")
	if err != nil {
		return err
	}
	if err := keepIdentity(dir, b, t.Drivers); err != nil {
		return err
	}
	id, err := trust.OpenIdentity(dir)
	if err != nil {
		return err
	}
	return printJSON(map[string]string{"cluster": t.Cluster, "name": id.Name().String(), "driver": t.Drivers[0],
		"expires": id.Expires().UTC().Format(time.RFC3339)})
}

func tokenCommand() *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Make, list and revoke the tokens of a cluster", Args: exactArgs(0,
		"a subcommand"),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(tokenCreateCommand(), tokenListCommand(), tokenRevokeCommand())
	return c
}

func tokenCreateCommand() *cobra.Command {
	req := &wire.CreateTokenRequest{}
	var ttl time.Duration
	c := clientCommand("create", "Make a token", `Create prints a token, once: only its hash is kept. With it an executor joins
(volley executor --join), a person gets a certificate (volley login), or, of the
role read, a program reads REST and metrics, and a browser the page, until it
expires (Authorization: Bearer TOKEN), and nothing else. On a cluster of one user
one of the role submit lets a program submit and cancel by REST. The roles: executor works; submit submits jobs, and sees all;
read sees jobs, logs and metrics; admin may do everything.`, exactArgs(0, "no arguments beside flags"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, asJSON bool) error {
			req.TtlNs = int64(ttl)
			reply, err := client.CreateToken(ctx, req)
			if err != nil {
				return wire.CallError("make a token at", addr, err)
			}
			if asJSON {
				return printJSON(map[string]string{"id": reply.Id, "token": reply.Token})
			}
			fmt.Println(reply.Token)
			return nil
		})
	c.Example = "  volley token create --role executor --uses 20\n  volley token create --role submit --name alice"
	fs := c.Flags()
	fs.StringVar(&req.Role, "role", "", "executor, submit, read or admin")
	fs.DurationVar(&ttl, "ttl", time.Hour, "how long it can be used")
	fs.Uint32Var(&req.Uses, "uses", 1, "how many executors may join by it")
	fs.StringVar(&req.Name, "name", "", "of who joins by it (default: made up; executors have --name)")
	fs.BoolVar(&req.Login, "login", false, "of the role read: a user gets a certificate by it; it does not open REST")
	return c
}

func tokenListCommand() *cobra.Command {
	return clientCommand("list", "List the tokens that can be used", "List shows tokens without their secrets.",
		exactArgs(0, "no arguments"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, asJSON bool) error {
			reply, err := client.Tokens(ctx, &wire.TokensRequest{})
			if err != nil {
				return wire.CallError("list the tokens of", addr, err)
			}
			views := []tokenView{}
			for _, t := range reply.Tokens {
				views = append(views, tokenView{t.Id, t.Role, t.Name, t.Uses, time.Unix(0, t.MadeUnixNs).UTC(),
					time.Unix(0, t.ExpiresUnixNs).UTC(), t.By})
			}
			if asJSON {
				return printJSON(views)
			}
			return table("ID\tROLE\tNAME\tUSES\tEXPIRES\tBY", func(row func(...any)) {
				for _, v := range views {
					row(v.ID, v.Role, v.Name, v.Uses, v.Expires.Format(time.DateTime), v.By)
				}
			})
		})
}

// tokenView is a token as it is shown.
type tokenView struct {
	ID      string    `json:"id"`
	Role    string    `json:"role"`
	Name    string    `json:"name,omitempty"`
	Uses    uint32    `json:"uses"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	By      string    `json:"by"`
}

func tokenRevokeCommand() *cobra.Command {
	return clientCommand("revoke ID", "End a token: it lets no more in",
		"Revoke ends a token. Who has joined by it stays: volley certs revoke ends that.", exactArgs(1,
			"the id of a token"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, _ bool) error {
			_, err := client.RevokeToken(ctx, &wire.RevokeTokenRequest{Id: args[0]})
			return wire.CallError("revoke "+args[0]+" at", addr, err)
		})
}

func certsCommand() *cobra.Command {
	c := clientCommand("certs", "List, revoke and renew the certificates of a cluster",
		`Certs lists the certificates of executors and people that have not expired.
Those of jobs' processes are not among them: they last an hour, and end with
their job.`, exactArgs(0, "no arguments"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, asJSON bool) error {
			reply, err := client.Certificates(ctx, &wire.CertificatesRequest{})
			if err != nil {
				return wire.CallError("list the certificates of", addr, err)
			}
			return showCertificates(reply.Certificates, asJSON)
		})
	c.AddCommand(certsRevokeCommand(), certsRenewCommand(), certsRotateCommand(), certsRetireCommand())
	return c
}

// certificateView is a certificate as it is shown.
type certificateView struct {
	Serial    string     `json:"serial"`
	Name      string     `json:"name"`
	Expires   time.Time  `json:"expires"`
	Revoked   *time.Time `json:"revoked,omitempty"`
	Authority string     `json:"authority"`
}

func showCertificates(list []*wire.CertificateInfo, asJSON bool) error {
	views := []certificateView{}
	for _, i := range list {
		v := certificateView{Serial: i.Serial, Name: i.Name, Expires: time.Unix(0, i.ExpiresUnixNs).UTC(),
			Authority: i.Authority}
		if i.RevokedUnixNs != 0 {
			at := time.Unix(0, i.RevokedUnixNs).UTC()
			v.Revoked = &at
		}
		views = append(views, v)
	}
	if asJSON {
		return printJSON(views)
	}
	return table("NAME\tSERIAL\tEXPIRES\tREVOKED\tAUTHORITY", func(row func(...any)) {
		for _, v := range views {
			revoked := ""
			if v.Revoked != nil {
				revoked = v.Revoked.Format(time.DateTime)
			}
			row(v.Name, v.Serial, v.Expires.Format(time.DateTime), revoked, v.Authority[:min(8, len(v.Authority))])
		}
	})
}

func certsRevokeCommand() *cobra.Command {
	return clientCommand("revoke WHICH", "End certificates",
		`Revoke ends a certificate by its serial number, or all of a name, such as
executor/a or submit/alice, and the connections of executors that have it. The
runners of such an executor may speak to those of others for an hour at most.`,
		exactArgs(1, "a serial number or a name"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, asJSON bool) error {
			reply, err := client.RevokeCertificate(ctx, &wire.RevokeCertificateRequest{Which: args[0]})
			if err != nil {
				return wire.CallError("revoke "+args[0]+" at", addr, err)
			}
			return showCertificates(reply.Revoked, asJSON)
		})
}

// trustCommand returns a command that a user with a certificate gives to a driver.
func trustCommand(use, short, long string, run func(ctx context.Context, to target, client wire.ClusterClient,
	asJSON bool) error) *cobra.Command {
	var addr, config string
	var asJSON bool
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			to, err := findDriver(addr)
			if err != nil {
				return err
			}
			if to.by.ID == nil {
				return fault.Newf(fault.Usage, use+" certificates at", to.addr, "at a socket there are none")
			}
			client, done, err := to.connect()
			if err != nil {
				return err
			}
			defer done()
			return run(c.Context(), to, client, asJSON)
		}}
	c.Flags().StringVar(&addr, "driver", "", aboutDriver)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&config, "config", "", "YAML file with values for flags")
	return c
}

func certsRenewCommand() *cobra.Command {
	return trustCommand("renew", "Have this user's own certificate signed anew",
		`Renew does at once what commands do by themselves when a third of the life of
this user's certificate is left. It is possible in the second half of that life,
and at any time after volley certs rotate.`,
		func(ctx context.Context, to target, client wire.ClusterClient, _ bool) error {
			return wire.CallError("renew the certificate at", to.addr, wire.Renew(ctx, client, to.by.ID))
		})
}

func certsRotateCommand() *cobra.Command {
	return trustCommand("rotate", "Make an authority that signs from now on",
		`Rotate makes the authority that follows the present one. Both are trusted:
executors and this user get certificates of the new one at once, other users when
theirs are renewed, or by volley certs renew. volley certs retire ends the old one.`,
		func(ctx context.Context, to target, client wire.ClusterClient, asJSON bool) error {
			if err := changeAuthority(ctx, to, client, &wire.ChangeAuthorityRequest{}, asJSON); err != nil {
				return err
			}
			return wire.CallError("renew the certificate at", to.addr, wire.Renew(ctx, client, to.by.ID))
		})
}

func certsRetireCommand() *cobra.Command {
	req := &wire.ChangeAuthorityRequest{Retire: true}
	c := trustCommand("retire", "Trust no authority but the newest",
		`Retire ends the authorities before the newest: members and users that have
certificates of theirs only are not let in any more. It refuses while there are any.`,
		func(ctx context.Context, to target, client wire.ClusterClient, asJSON bool) error {
			return changeAuthority(ctx, to, client, req, asJSON)
		})
	c.Flags().BoolVar(&req.Force, "force", false, "even so: those need a token to join again")
	return c
}

func changeAuthority(ctx context.Context, to target, client wire.ClusterClient, req *wire.ChangeAuthorityRequest,
	asJSON bool) error {
	reply, err := client.ChangeAuthority(ctx, req)
	if err != nil {
		return wire.CallError("change the authority at", to.addr, err)
	}
	if asJSON {
		return printJSON(map[string][]string{"authorities": reply.Authorities})
	}
	for _, pin := range reply.Authorities {
		fmt.Println(pin)
	}
	return nil
}
