package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// Token lets its bearer into a cluster: as a member with a certificate of its own (a join token), or to look at
// REST and metrics. Drivers keep the hash of its secret only.
type Token struct {
	Cluster string   `json:"cluster,omitempty"`
	Role    Role     `json:"role"`
	Drivers []string `json:"drivers,omitempty"` // addresses
	Pin     string   `json:"pin,omitempty"`     // of the cluster's authority
	Secret  string   `json:"secret"`
}

// tokenPrefix begins every token, so that those who search for leaked secrets find them.
const tokenPrefix = "volley-token-"

// NewSecret returns a random secret.
func NewSecret() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// HashOf returns what is kept of a secret. Secrets are random, and looked up by their hash: the time that takes
// tells nothing of them.
func HashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// String returns the token as a user passes it on.
func (t Token) String() string {
	raw, _ := json.Marshal(t) // plain fields
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// ParseToken reads what String returns.
func ParseToken(s string) (t Token, err error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(s), tokenPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if !ok || err != nil || t.Secret == "" {
		return Token{}, fault.Newf(fault.Usage, "read", "the token", "it is none, or not whole").
			WithHint("volley token create prints one line, which begins with " + tokenPrefix)
	}
	return t, nil
}

// Joins returns an error where the token does not lead to a certificate.
func (t Token) Joins() error {
	if t.Pin == "" || len(t.Drivers) == 0 || !Valid(t.Cluster) {
		return fault.Newf(fault.Usage, "use", "the token", "it is for REST and metrics, and opens nothing else")
	}
	return nil
}
