// Package parquet reads files of columns, Parquet and Arrow: as points, as columns of
// values, or as Arrow records.
//
// They are decoded by a child process, this program started again, with a limit on
// memory (ADR 2); the package owns the child, the shared memory, and the child's
// supervision. Sizes that come from a file are checked before memory is allocated for
// them here, and a decoder's panic becomes an error.
package parquet
