// Package input reads the datasets of jobs: it detects the format of files, decides
// how they are read and where they are cut into parts, and yields the rows of each
// part, prepared where requested.
//
// It owns the choice of a reader (csv, parquet, and lines and LIBSVM here), the options
// of a job, and the preparation of features. Readers are built from files, text and
// rows. It must not know what becomes of rows.
package input
