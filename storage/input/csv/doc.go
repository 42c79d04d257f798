// Package csv reads tables of text: it finds out how they are written, cuts them into
// parts where records begin, and hands on points, or records for types of the user's.
//
// It owns the law of how records are cut (dialect). It must not know what columns are
// made into.
package csv
