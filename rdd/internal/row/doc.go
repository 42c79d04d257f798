// Package row owns how rows look: as bytes that move and are kept (codecs, the law of keys, hashes), in batches
// and arenas of memory, and as columns of tables that are read and written.
//
// It knows rows only: no plan, no shuffle and no task.
package row
