// Package csv reads tables of text: it detects their dialect, cuts them into parts at
// records, and yields points, or records for users' types.
//
// It owns the rules of how records are cut (dialect). It must not know what becomes
// of columns.
package csv
