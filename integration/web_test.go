package integration

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/integration/lab"
)

// fetched is what a server says to who has a token, or none.
func fetched(t *testing.T, client *http.Client, url, token string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// TestWhatAnExecutorShows over TLS, by the certificate of its cluster, to who has a read token of it; and when it is
// not ready.
func TestWhatAnExecutorShows(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	at := freePort(t)
	p := s.join("a", "--http", at)
	if p.Ready["http"] != at {
		t.Errorf("it says %v", p.Ready)
	}
	ca, err := os.ReadFile(filepath.Join(s.admin, "clusters", "test", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no authority")
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "a.executor.test"}, DisableKeepAlives: true}}
	token := s.as(s.admin, "token", "create", "--role", "read", "--ttl", "1h")
	for _, c := range []struct {
		path, token, want string
		code              int
	}{
		{"/healthz", token, `"ok"`, 200},
		{"/readyz", token, `"ok"`, 200},
		{"/metrics", token, "volley_node_connected 1", 200},
		{"/metrics", token, `volley_node_build_info{`, 200},
		{"/metrics", "", "read token", 401},
		{"/metrics", "volley-token-e30", "read token", 401},
		{"/elsewhere", token, "/metrics", 404},
	} {
		code, body := fetched(t, client, "https://"+at+c.path, c.token)
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %.300s, want %d %s", c.path, code, body, c.code, c.want)
		}
	}
	s.driver.Kill()
	if err := lab.Await("that it is not ready", func() (bool, error) {
		code, body := fetched(t, client, "https://"+at+"/readyz", token)
		return code == 503 && strings.Contains(body, "no connection to the driver"), nil
	}); err != nil {
		t.Error(err)
	}
	if code, _ := fetched(t, client, "https://"+at+"/healthz", token); code != 200 {
		t.Errorf("it does not live: %d", code)
	}
	s.startDriver()
	s.as(s.admin, "token", "revoke", strings.Fields(strings.Split(s.as(s.admin, "token", "list"), "\n")[1])[0])
	if err := lab.Await("that the token is of no use", func() (bool, error) {
		code, _ := fetched(t, client, "https://"+at+"/healthz", token)
		return code == 401, nil
	}); err != nil {
		t.Error(err)
	}
}
