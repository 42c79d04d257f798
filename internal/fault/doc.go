// Package fault names what can go wrong. An Error has an operation, a subject
// and a Kind; the kind survives the wire, and one table says what each kind
// means for retry.
//
// It must not import any package that can fail: everything else imports it.
package fault
