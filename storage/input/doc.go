// Package input reads datasets as jobs name them: it finds out what format files have,
// how they are read and where they are cut into parts, and hands on the rows of each
// part, prepared where that is asked for.
//
// It owns the choice of a reader (csv, parquet, and lines and LIBSVM here), the options
// of a job, and the preparation of features. What files and ranges are is in files, text
// and rows, which readers are made of. It must not know what becomes of rows.
package input
