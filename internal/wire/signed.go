package wire

import (
	"encoding/json"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
)

// ofPrograms is what signatures of programs are for.
const ofPrograms = "program"

// SignProgram has a submitter sign a program, where it has a key.
func SignProgram(by Party, u *UserProgram) error {
	if by.ID == nil {
		return nil
	}
	s, err := by.ID.Sign(ofPrograms, u.Digest)
	if err == nil {
		u.Signed, err = json.Marshal(s)
	}
	return err
}

// SignerOf returns who has signed a program, if they may submit any.
func SignerOf(id *trust.Identity, u *UserProgram) (trust.Name, error) {
	var s trust.Signed
	if err := json.Unmarshal(u.Signed, &s); err != nil {
		return trust.Name{}, fault.Newf(fault.Unauthorized, "run the program", u.Digest, "it is not signed")
	}
	who, err := id.Signer(s, ofPrograms, u.Digest)
	if err == nil && who.Role != trust.Submit && who.Role != trust.Admin && who.Role != trust.Driver {
		err = fault.Newf(fault.Unauthorized, "run the program", u.Digest, "%s has signed it, who may submit none", who)
	}
	return who, err
}
